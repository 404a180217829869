#include "tune/results/trial_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "tune/results/csv.h"
#include "tune/results/result_lines.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeptBytes = 16u << 10;  // of a buffer between two turns

// The columns that a file was begun with; none when it is missing.
Columns read_columns(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0 || status.st_size == 0) return {};
  const std::string all = read_file(file);
  std::string_view text = all;
  std::vector<std::string> names;
  next_csv_row(text, names);
  return Columns(names);
}

// The buffer is empty afterwards, whether the write succeeds or not.
void write_out(AppendFile& file, std::string& text) {
  struct Emptied {
    std::string& text;
    ~Emptied() {
      if (text.capacity() > kKeptBytes) text = std::string();
      text.clear();
    }
  } const emptied{text};
  if (!text.empty()) file.write(text);
}

// As a whole or not at all, but not flushed to disk: the journal would bring it back.
void replace_file(const fs::path& file, const std::string& text) {
  const fs::path temporary =
      fs::path(file).replace_filename("." + file.filename().string() + ".tmp");
  try {
    AppendFile(temporary, true).write(text);
    if (rename(temporary.c_str(), file.c_str()) != 0) {
      throw file_error("renaming a temporary file to", file, errno);
    }
  } catch (const Error&) {
    unlink(temporary.c_str());
    throw;
  }
}

// The offset after the header and this many rows; 0 for no row.
std::uint64_t csv_offset_after(const fs::path& file, std::uint64_t rows) {
  return rows == 0 ? 0 : offset_after_rows(read_file(file), rows + 1, Quotes::kQuote);
}

void read_line(std::string_view line, const std::string& where, ResultText& result) {
  result.clear();
  result.add_members(pack(parse_json(line, where)).bytes);
}

}  // namespace

void TrialFiles::append(const ResultText& result) {
  json_text_.append(1, '{').append(result.json()).append("}\n");
  ++pending_lines_;
  load_columns();
  if (csv_is_stale_) return;
  if (columns_->empty()) {
    columns_->learn(result);
    columns_->arrange();
    columns_->append_header(csv_text_);
    csv_text_ += '\n';
    lengths_.columns_at = 1;
  }
  csv_is_stale_ = !columns_->append_row(csv_text_, result);
  csv_text_ += '\n';
}

// The columns of the file, unless an earlier driver has begun it anew with other ones.
void TrialFiles::load_columns() {
  if (columns_) return;
  columns_ = lines_kept() > 0 ? read_columns(csv_path()) : Columns();
  if (lines_kept() > 0 && cut_back_ && columns_->size() != lengths_.columns) csv_is_stale_ = true;
}

void TrialFiles::cut(std::uint64_t lines) {
  if (lines >= lines_kept() + pending_lines_) return;
  if (lines < lengths_.columns_at) csv_is_stale_ = true;  // a column goes
  if (lines >= lines_kept()) {
    pending_lines_ = lines - lines_kept();
    const std::uint64_t header = lines_kept() == 0 ? 1 : 0;
    json_text_.resize(offset_after_rows(json_text_, pending_lines_, Quotes::kAreText));
    csv_text_.resize(offset_after_rows(csv_text_, pending_lines_ + header, Quotes::kQuote));
  } else {
    cut_to_ = lines;
    pending_lines_ = 0;
    json_text_.clear();
    csv_text_.clear();
  }
  if (lines > 0) return;
  csv_text_.clear();
  columns_.emplace();
  csv_is_stale_ = false;
}

void TrialFiles::flush() {
  if (cut_back_ || cut_to_) cut_files();
  lengths_.lines += std::exchange(pending_lines_, 0);
  lengths_.json_bytes += json_text_.size();
  if (!json_text_.empty() && !json_.is_open()) json_ = AppendFile(json_path(), false);
  write_out(json_, json_text_);
  if (csv_is_stale_) return rebuild();
  lengths_.csv_bytes += csv_text_.size();
  if (columns_) lengths_.columns = columns_->size();
  if (!csv_text_.empty() && !csv_.is_open()) csv_ = AppendFile(csv_path(), false);
  write_out(csv_, csv_text_);
}

// Afterwards the files hold `lengths_` and nothing else, but for a stale progress.csv.
void TrialFiles::cut_files() {
  close();
  if (lines_kept() > 0) load_columns();
  if (cut_to_ && *cut_to_ < lengths_.lines) {
    lengths_.lines = *cut_to_;
    lengths_.json_bytes = offset_after_lines(json_path(), *cut_to_);
    if (!csv_is_stale_) lengths_.csv_bytes = csv_offset_after(csv_path(), *cut_to_);
  }
  cut_to_.reset();
  cut_back_ = false;
  begin_at(json_path(), lengths_.json_bytes, json_text_);
  if (!csv_is_stale_) begin_at(csv_path(), lengths_.csv_bytes, csv_text_);
}

// The file goes on with `text` after its first `bytes` bytes. A file that is to hold nothing is
// removed; a file that holds just that text is left as it is.
void TrialFiles::begin_at(const fs::path& file, std::uint64_t& bytes, std::string& text) {
  if (bytes > 0) return cut_file(file, bytes);
  if (text.empty()) {
    if (unlink(file.c_str()) != 0 && errno != ENOENT) throw file_error("removing", file, errno);
    return;
  }
  if (!file_holds(file, text)) return cut_file(file, 0);
  bytes = text.size();
  text.clear();
}

void TrialFiles::rebuild() {
  csv_.close();
  csv_text_.clear();
  csv_is_stale_ = false;
  columns_.emplace();
  ResultText result;
  const auto each = [&](auto&& use) {
    for_each_line(json_path(), [&](std::string_view line, std::size_t number) {
      read_line(line, fmt::format("{}:{}", json_path().string(), number), result);
      use(number);
    });
  };
  lengths_.columns = lengths_.columns_at = 0;
  each([&](std::size_t number) {
    columns_->learn(result);
    if (columns_->size() == lengths_.columns) return;
    lengths_.columns = columns_->size();
    lengths_.columns_at = number;
  });
  columns_->arrange();
  std::string text;
  if (!columns_->empty()) columns_->append_header(text), text += '\n';
  each([&](std::size_t) { columns_->append_row(text, result), text += '\n'; });
  replace_file(csv_path(), text);
  lengths_.csv_bytes = text.size();
}

void TrialFiles::close() {
  json_.close();
  csv_.close();
}

}  // namespace tune
