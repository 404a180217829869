#include "tune/results/results_csv.h"

#include <algorithm>
#include <utility>

#include "core/json.h"
#include "core/platform/files.h"
#include "tune/control/trial_book.h"
#include "tune/results/result_lines.h"
#include "tune/spec/experiment_identity.h"

namespace tune {

namespace {

constexpr std::size_t kPieceBytes = 64u << 10;

// Takes the next cell, quotes and all, off the front of a row.
std::string_view next_cell(std::string_view& row) {
  std::size_t end = 0;
  if (row.starts_with('"')) {
    do {  // a doubled quote is text
      end = row.find('"', end + 1) + 1;
    } while (end < row.size() && row[end] == '"');
  } else {
    end = std::min(row.find(','), row.size());
  }
  const std::string_view cell = row.substr(0, end);
  row.remove_prefix(std::min(row.size(), end + 1));
  return cell;
}

}  // namespace

// ---- Rows ---------------------------------------------------------------------------------------

void ResultsTable::read_line(ResultText& text, std::string_view line, const std::string& where) {
  if (!line.empty()) text.add_members(pack(parse_json(line, where)).bytes, ResultField::kTrialId);
}

void ResultsTable::add(std::string id, TrialStatus status, const Make& make, const Packed& config) {
  make(results_.cleared());
  const bool is_large = results_.bytes() > kMaxKeptBytes;
  if (is_large) large_[rows_.size()] = make;
  configs_.cleared().add_members(config.bytes);
  rows_.push_back({std::move(id), status, results_.cells(!is_large), configs_.cells(true)});
}

void ResultsTable::write(const std::function<void(std::string_view)>& sink) {
  results_.arrange(true);
  configs_.arrange(false);
  std::string text = "trial_id,status";
  results_.append_header(text, "");
  configs_.append_header(text, "config/");
  text += '\n';
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    text.append(row.id).append(1, ',').append(status_name(row.status));
    if (const auto large = large_.find(i); large != large_.end()) {
      large->second(results_.cleared());
      results_.append(text, results_.cells(true));
    } else {
      results_.append(text, row.result);
    }
    configs_.append(text, row.config);
    text += '\n';
    if (text.size() < kPieceBytes) continue;
    sink(text);
    text.clear();
  }
  sink(text);
}

std::string ResultsTable::to_csv() {
  std::string csv;
  write([&](std::string_view piece) { csv += piece; });
  return csv;
}

// ---- Parts --------------------------------------------------------------------------------------

ResultText& ResultsTable::Part::cleared() {
  text_.clear();
  return text_;
}

std::size_t ResultsTable::Part::bytes() const {
  std::size_t bytes = 0;
  for (std::size_t cell = 0; cell < text_.cells(); ++cell) bytes += text_.text(cell).size() + 1;
  return bytes;
}

ResultsTable::Cells ResultsTable::Part::cells(bool keeps_text) {
  if (!is_arranged_) columns_.learn(text_);
  Cells cells;
  cells.layout = layout();
  if (!keeps_text) return cells;
  cells.text.reserve(bytes());
  for (std::size_t cell = 0; cell < text_.cells(); ++cell) {
    if (cell > 0) cells.text += ',';
    cells.text += text_.text(cell);
  }
  return cells;
}

std::uint32_t ResultsTable::Part::layout() {
  const auto is_that = [this](const Layout& layout) {
    bool is = layout.paths.size() == text_.cells();
    for (std::size_t i = 0; is && i < layout.paths.size(); ++i) {
      is = text_.path(i) == layout.paths[i];
    }
    return is;
  };
  if (last_ < layouts_.size() && is_that(layouts_[last_])) return last_;
  Layout layout;
  std::string all;
  for (std::size_t i = 0; i < text_.cells(); ++i) {
    layout.paths.emplace_back(text_.path(i));
    all.append(std::to_string(layout.paths.back().size())).append(1, ':');
    all += layout.paths.back();
  }
  const auto [found, is_new] = index_.try_emplace(std::move(all), layouts_.size());
  if (is_new) {
    layouts_.push_back(std::move(layout));
    if (is_arranged_) place(layouts_.back());
  }
  return last_ = found->second;
}

void ResultsTable::Part::arrange(bool fields_first) {
  if (fields_first) columns_.arrange();
  is_arranged_ = true;
  for (Layout& layout : layouts_) place(layout);
}

void ResultsTable::Part::place(Layout& layout) const {
  layout.cell_of_column.assign(columns_.size(), -1);
  layout.is_in_order = layout.paths.size() == columns_.size();
  for (std::size_t cell = 0; cell < layout.paths.size(); ++cell) {
    const auto column = columns_.find(layout.paths[cell]);
    if (column) layout.cell_of_column[*column] = static_cast<std::int32_t>(cell);
    layout.is_in_order = layout.is_in_order && column == cell;
  }
}

void ResultsTable::Part::append_header(std::string& out, std::string_view prefix) const {
  if (columns_.empty()) return;
  out += ',';
  columns_.append_header(out, prefix);
}

void ResultsTable::Part::append(std::string& out, const Cells& cells) {
  if (columns_.empty()) return;
  out += ',';
  const Layout& layout = layouts_[cells.layout];
  if (layout.is_in_order) {
    out += cells.text;
    return;
  }
  cut_.clear();
  std::string_view rest = cells.text;
  while (cut_.size() < layout.paths.size()) cut_.push_back(next_cell(rest));
  for (std::size_t column = 0; column < layout.cell_of_column.size(); ++column) {
    if (column > 0) out += ',';
    const std::int32_t cell = layout.cell_of_column[column];
    if (cell >= 0) out += cut_[static_cast<std::size_t>(cell)];
  }
}

// ---- The file -----------------------------------------------------------------------------------

void write_results_csv(const std::filesystem::path& file, const ExperimentSpec& spec,
                       const std::deque<Trial>& trials, LastResults& last) {
  const std::string experiment = experiment_id_of(spec);
  const ExperimentTags tags(spec);
  ResultsTable table;
  for (const Trial& trial : trials) {
    std::string id = trial_id(experiment, trial.number);
    const auto make = [&file, &last, &tags, &trial, id](ResultText& text) {
      if (!trial.last || last.make(text, trial, tags)) return;
      const auto line = last_line(file.parent_path() / id / "result.json");
      ResultsTable::read_line(text, line.value_or(""), "the last result of " + id);
    };
    table.add(id, trial.status, make, trial.config);
  }
  ReplacedFile replaced(file);
  table.write([&](std::string_view piece) { replaced.write(piece); });
  replaced.commit();
}

}  // namespace tune
