#include "tune/trial_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "tune/csv.h"
#include "tune/result_lines.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeptBytes = 16u << 10;  // of a buffer between two turns

// The columns a file was begun with; none when it is not there.
Columns read_columns(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0 || status.st_size == 0) return {};
  const std::string all = read_file(file);
  std::string_view text = all;
  std::vector<std::string> names;
  next_csv_row(text, names);
  return Columns(names);
}

// The buffer is empty afterwards, whatever becomes of the write.
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

// Whole or not at all, but not flushed to disk: the journal would bring it back.
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

void read_line(std::string_view line, const std::string& where, ResultText& result) {
  result.clear();
  result.add_members(pack(parse_json(line, where)).bytes);
}

}  // namespace

void TrialFiles::append(const ResultText& result) {
  json_text_.append(1, '{').append(result.json()).append("}\n");
  if (csv_is_stale_) return;
  if (!columns_) columns_ = read_columns(csv_path());
  if (columns_->empty()) {
    columns_->learn(result);
    columns_->arrange();
    columns_->append_header(csv_text_);
    csv_text_ += '\n';
  }
  csv_is_stale_ = !columns_->append_row(csv_text_, result);
  csv_text_ += '\n';
}

void TrialFiles::flush() {
  if (!json_text_.empty() && !json_.is_open()) json_ = AppendFile(json_path(), false);
  write_out(json_, json_text_);
  if (csv_is_stale_) return rebuild();
  if (!csv_text_.empty() && !csv_.is_open()) csv_ = AppendFile(csv_path(), false);
  write_out(csv_, csv_text_);
}

void TrialFiles::cut(std::uint64_t lines) {
  flush();
  const auto size = static_cast<off_t>(offset_after_lines(json_path(), lines));
  if (truncate(json_path().c_str(), size) != 0 && errno != ENOENT) {
    throw file_error(fmt::format("cutting to {} bytes", size), json_path(), errno);
  }
  rebuild();
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
      use();
    });
  };
  each([&] { columns_->learn(result); });
  columns_->arrange();
  std::string text;
  if (!columns_->empty()) columns_->append_header(text), text += '\n';
  each([&] { columns_->append_row(text, result), text += '\n'; });
  replace_file(csv_path(), text);
}

void TrialFiles::close() {
  json_.close();
  csv_.close();
}

}  // namespace tune
