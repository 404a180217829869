#include "tune/results/result_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTrainingIteration = "training_iteration";
constexpr std::size_t kChunkBytes = 64u << 10;

// Not open when the file is missing.
FileDescriptor open_for_reading(const fs::path& file) {
  FileDescriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened.is_open() && errno != ENOENT) throw file_error("reading", file, errno);
  return opened;
}

// A string would be filled with zeros before each read: of a hundred thousand short files that
// alone takes a second.
class Chunk {
 public:
  // At most kChunkBytes at the offset, until the next call; empty at the end.
  std::string_view read(int descriptor, std::size_t offset, const fs::path& file) {
    ssize_t count = 0;
    do {
      count = pread(descriptor, bytes_.get(), kChunkBytes, static_cast<off_t>(offset));
    } while (count < 0 && errno == EINTR);
    if (count < 0) throw file_error("reading", file, errno);
    return {bytes_.get(), static_cast<std::size_t>(count)};
  }

 private:
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kChunkBytes);
};

enum class Null { kIsNan, kStays };

void turn_back(Value& value, Null null) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_null()) {
    if (null == Null::kIsNan) value = std::numeric_limits<double>::quiet_NaN();
  } else if (value.is_string() && value.string() == "inf") {
    value = kInfinity;
  } else if (value.is_string() && value.string() == "-inf") {
    value = -kInfinity;
  } else if (value.is_list()) {
    for (Value& item : value.list()) turn_back(item, null);
  } else if (value.is_map()) {
    for (Member& member : value.map()) turn_back(member.value, null);
  }
}

Value read_object(std::string_view text, const std::string& where, Null null) {
  Value value = parse_json(text, where);
  if (!value.is_map()) {
    throw Error(ErrorCode::kBadInput, fmt::format("reading {}: expected an object, found {}", where,
                                                  type_name(value.type())));
  }
  turn_back(value, null);
  return value;
}

}  // namespace

void for_each_line(const fs::path& file,
                   const std::function<void(std::string_view, std::size_t)>& visit) {
  const FileDescriptor opened = open_for_reading(file);
  if (!opened.is_open()) return;
  Chunk chunk;
  std::string kept;  // the begin of a line that goes on in the next chunk
  std::size_t number = 0;
  for (std::size_t offset = 0;;) {
    std::string_view rest = chunk.read(opened.get(), offset, file);
    if (rest.empty()) return;
    offset += rest.size();
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      std::string_view line = rest.substr(0, end);
      if (!kept.empty()) line = kept.append(line);
      visit(line, ++number);
      kept.clear();
      rest.remove_prefix(end + 1);
    }
    kept.append(rest);
  }
}

std::optional<std::string> last_line(const fs::path& file) {
  const FileDescriptor opened = open_for_reading(file);
  struct stat status {};
  if (!opened.is_open()) return std::nullopt;
  if (fstat(opened.get(), &status) != 0) throw file_error("reading", file, errno);
  std::string tail;
  Chunk chunk;
  for (auto begin = static_cast<std::size_t>(status.st_size); begin > 0;) {
    // Most lines are short: a small piece first.
    const std::size_t wanted = std::min(begin, tail.empty() ? std::size_t{4096} : kChunkBytes);
    begin -= wanted;
    tail.insert(0, chunk.read(opened.get(), begin, file).substr(0, wanted));
    const std::size_t end = tail.rfind('\n');
    if (end == std::string::npos) continue;
    const std::size_t before = end == 0 ? std::string::npos : tail.rfind('\n', end - 1);
    if (before != std::string::npos) return tail.substr(before + 1, end - before - 1);
    if (begin == 0) return tail.substr(0, end);
  }
  return std::nullopt;
}

std::size_t offset_after_lines(const fs::path& file, std::size_t count) {
  const FileDescriptor opened = open_for_reading(file);
  Chunk chunk;
  std::size_t end_of_lines = 0;
  std::size_t lines = 0;
  for (std::size_t offset = 0; opened.is_open() && lines < count;) {
    const std::string_view read = chunk.read(opened.get(), offset, file);
    if (read.empty()) break;
    for (std::size_t at = read.find('\n'); at != read.npos && lines < count;
         at = read.find('\n', at + 1)) {
      ++lines;
      end_of_lines = offset + at + 1;
    }
    offset += read.size();
  }
  return end_of_lines;
}

Result result_from_line(std::string_view line, const std::string& where) {
  return Result(read_object(line, where, Null::kIsNan));
}

std::optional<double> number_at(const Result& result, std::size_t iteration,
                                std::string_view path) {
  const Value* value = result.find(path);
  if (value == nullptr) return std::nullopt;
  const bool is_count = path == kTrainingIteration;
  const bool is_number = value->is_number() && !(is_count && std::isnan(value->number()));
  if (is_number) return value->number();
  return is_count ? std::optional(static_cast<double>(iteration)) : std::nullopt;
}

// Lines are counted where they matter alone: the file may be long.
ResultLine last_result_line(const fs::path& trial_directory) {
  const fs::path file = trial_directory / "result.json";
  const std::optional<std::string> text = last_line(file);
  if (!text) return {};
  ResultLine last{result_from_line(*text, file.string()), 0};
  const double told = last.number(kTrainingIteration).value_or(0);
  if (told > 0) {
    last.iteration = static_cast<std::size_t>(told);
  } else {
    for_each_line(file, [&](std::string_view, std::size_t number) { last.iteration = number; });
  }
  return last;
}

Config config_from_json(std::string_view text, const std::string& where) {
  return Config(read_object(text, where, Null::kStays));
}

}  // namespace tune
