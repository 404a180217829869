#include "tune/results/result_scan.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"

namespace tune {

namespace {

using Visit = std::function<void(std::string_view, double)>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The bytes of a line from left to right. Lines that tune wrote have no spaces and mostly no
// escapes. Anything else is "unusual", and parsed as any JSON.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : line_(line), rest_(line) {}

  bool is_at_end() const { return rest_.empty(); }
  std::size_t place() const { return line_.size() - rest_.size(); }
  bool is_next(char wanted) const { return is_at(0, wanted); }
  bool take(char wanted) {
    if (!is_next(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(wanted.size());
    return true;
  }
  // A text without escapes.
  bool text(std::string_view& out) {
    if (!take('"')) return false;
    std::size_t end = 0;
    while (end < rest_.size() && rest_[end] != '"' && rest_[end] != '\\') ++end;
    if (end == rest_.size() || rest_[end] == '\\') return false;
    out = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }
  // A value that is not an object; `number` stays empty when it is not a number either.
  bool leaf(std::optional<double>& number) {
    number.reset();
    if (rest_.empty()) return false;
    switch (rest_.front()) {
      case '"': {
        std::string_view said;
        if (!text(said)) return false;
        if (said == "inf") number = kInfinity;
        if (said == "-inf") number = -kInfinity;
        return true;
      }
      case 't':
        number = 1;
        return take("true");
      case 'f':
        number = 0;
        return take("false");
      case 'n':
        number = kNan;
        return take("null");
      default:
        return take_number(number);
    }
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  // From `at` on.
  std::size_t count_digits(std::size_t at) const {
    std::size_t end = at;
    while (end < rest_.size() && is_digit(rest_[end])) ++end;
    return end - at;
  }
  bool is_at(std::size_t at, char c) const { return at < rest_.size() && rest_[at] == c; }

  // The length of what is a number of JSON at the begin; 0: none is. from_chars alone reads more:
  // "inf", "01", "1.".
  std::size_t number_length(std::size_t whole_at, std::size_t whole) const {
    if (whole == 0 || (whole > 1 && rest_[whole_at] == '0')) return 0;
    std::size_t end = whole_at + whole;
    if (is_at(end, '.')) {
      const std::size_t digits = count_digits(end + 1);
      if (digits == 0) return 0;
      end += 1 + digits;
    }
    if (is_at(end, 'e') || is_at(end, 'E')) {
      const std::size_t sign = is_at(end + 1, '+') || is_at(end + 1, '-') ? 1 : 0;
      const std::size_t digits = count_digits(end + 1 + sign);
      if (digits == 0) return 0;
      end += 1 + sign + digits;
    }
    return end;
  }

  // Whole numbers of many digits are left to the JSON reader, which refuses those that no integer
  // holds.
  bool take_number(std::optional<double>& number) {
    constexpr std::size_t kSureDigits = 18, kExactDigits = 15;
    const std::size_t whole_at = is_at(0, '-') ? 1 : 0;
    const std::size_t whole = count_digits(whole_at);
    const std::size_t length = number_length(whole_at, whole);
    const bool is_whole = length == whole_at + whole;
    if (length == 0 || (is_whole && whole > kSureDigits)) return false;
    double value = 0;
    if (is_whole && whole <= kExactDigits && whole_at == 0) {
      std::uint64_t count = 0;
      for (std::size_t i = 0; i < whole; ++i) count = count * 10 + std::uint64_t(rest_[i] - '0');
      value = static_cast<double>(count);
    } else {
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + length, value);
      if (error != std::errc() || end != rest_.data() + length) return false;
    }
    rest_.remove_prefix(length);
    number = value;
    return true;
  }

  std::string_view line_, rest_;
};

// The numbers of a line, by the leaves of its layout: all are collected before any is visited, so
// that nothing is visited twice.
using LineNumbers = std::vector<std::pair<std::size_t, double>>;

// Where the values of a line stand. One line is mostly like the one before it but for its values:
// the bytes between these are then compared, and no name is read again.
class LineLayout {
 public:
  // False: the line is not like that.
  bool read(std::string_view line, LineNumbers& found) const {
    if (count_ == 0) return false;
    LineReader reader(line);
    found.clear();
    std::size_t begin = 0;
    std::optional<double> number;
    for (std::size_t i = 0; i < count_; ++i) {
      const Leaf& leaf = leaves_[i];
      if (!reader.take(between(begin, leaf.begin)) || !reader.leaf(number)) return false;
      if (number) found.emplace_back(i, *number);
      begin = leaf.end;
    }
    return reader.take(between(begin, line_.size())) && reader.is_at_end();
  }
  // Reads the line from scratch; false: it is unusual.
  bool learn(std::string_view line, LineNumbers& found) {
    LineReader reader(line);
    found.clear();
    path_.clear();
    count_ = 0;
    if (!object(reader, found, 1) || !reader.is_at_end()) return count_ = 0, false;
    line_ = line;
    return true;
  }
  const std::string& path(std::size_t leaf) const { return leaves_[leaf].path; }

 private:
  struct Leaf {
    std::string path;
    std::size_t begin = 0, end = 0;  // of its value in the line
  };

  std::string_view between(std::size_t begin, std::size_t end) const {
    return std::string_view(line_).substr(begin, end - begin);
  }
  bool object(LineReader& reader, LineNumbers& found, int depth) {
    if (depth > kMaxNesting || !reader.take('{')) return false;
    if (reader.take('}')) return true;
    do {
      std::string_view key;
      if (!reader.text(key) || !reader.take(':') || key.empty() || key.find('/') != key.npos) {
        return false;
      }
      const std::size_t length = path_.size();
      if (length > 0) path_ += '/';
      path_ += key;
      const bool is_map = reader.is_next('{');
      if (!(is_map ? object(reader, found, depth + 1) : leaf(reader, found))) return false;
      path_.resize(length);
    } while (reader.take(','));
    return reader.take('}');
  }
  bool leaf(LineReader& reader, LineNumbers& found) {
    if (count_ == leaves_.size()) leaves_.emplace_back();
    Leaf& leaf = leaves_[count_];
    std::optional<double> number;
    leaf.begin = reader.place();
    if (!reader.leaf(number)) return false;
    leaf.end = reader.place();
    if (leaf.path != path_) leaf.path = path_;
    if (number) found.emplace_back(count_, *number);
    ++count_;
    return true;
  }

  std::string line_;  // the one that was learnt
  std::string path_;
  std::vector<Leaf> leaves_;  // more than count_ are of earlier lines, whose memory is used again
  std::size_t count_ = 0;
};

void visit_value(const std::string& path, const Value& value, const Visit& visit) {
  switch (value.type()) {
    case Value::Type::kNull:
      return visit(path, kNan);
    case Value::Type::kBool:
      return visit(path, value.boolean() ? 1 : 0);
    case Value::Type::kInt:
    case Value::Type::kFloat:
      return visit(path, value.number());
    case Value::Type::kString:
      if (value.string() == "inf") visit(path, kInfinity);
      if (value.string() == "-inf") visit(path, -kInfinity);
      return;
    case Value::Type::kList:
    case Value::Type::kMap:
      return;
  }
}

}  // namespace

void scan_numbers(std::string_view line, const std::string& where, const Visit& visit) {
  thread_local LineLayout layout;
  thread_local LineNumbers found;
  if (layout.read(line, found) || layout.learn(line, found)) {
    for (const auto& [leaf, number] : found) visit(layout.path(leaf), number);
    return;
  }
  const Value value = parse_json(line, where);
  if (!value.is_map()) {
    throw Error(ErrorCode::kBadInput, fmt::format("reading {}: expected an object", where));
  }
  for (const auto& [path, leaf] : value.leaves()) visit_value(path, *leaf, visit);
}

}  // namespace tune
