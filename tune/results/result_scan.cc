#include "tune/results/result_scan.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
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

// Lines that tune wrote have no spaces and mostly no escapes. Anything else is "unusual",
// and parsed as any JSON. Numbers are collected first, so that nothing is visited twice.
class Scanner {
 public:
  Scanner(std::string_view line, std::vector<std::pair<std::string, double>>& found)
      : rest_(line), found_(found) {}

  bool scan() { return object() && rest_.empty(); }

 private:
  bool take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
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

  bool object() {
    if (++depth_ > kMaxNesting || !take('{')) return false;
    if (take('}')) return --depth_, true;
    do {
      std::string_view key;
      if (!text(key) || !take(':') || key.empty() || key.find('/') != key.npos) return false;
      const std::size_t length = path_.size();
      if (length > 0) path_ += '/';
      path_ += key;
      if (!value()) return false;
      path_.resize(length);
    } while (take(','));
    --depth_;
    return take('}');
  }

  bool value() {
    if (rest_.empty()) return false;
    switch (rest_.front()) {
      case '{':
        return object();
      case '[':
        return false;
      case '"': {
        std::string_view said;
        if (!text(said)) return false;
        if (said == "inf") found(kInfinity);
        if (said == "-inf") found(-kInfinity);
        return true;
      }
      case 't':
        return take_word("true") && (found(1), true);
      case 'f':
        return take_word("false") && (found(0), true);
      case 'n':
        return take_word("null") && (found(kNan), true);
      default:
        return number();
    }
  }

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
  bool number() {
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
    found(value);
    return true;
  }

  void found(double value) {
    if (count_ == found_.size()) found_.emplace_back();
    auto& [path, number] = found_[count_++];
    if (path != path_) path = path_;
    number = value;
  }

 public:
  std::size_t count() const { return count_; }

 private:
  std::string_view rest_;
  std::vector<std::pair<std::string, double>>& found_;
  std::size_t count_ = 0;
  std::string path_;
  int depth_ = 0;
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
  thread_local std::vector<std::pair<std::string, double>> found;
  Scanner scanner(line, found);
  if (scanner.scan()) {
    for (std::size_t i = 0; i < scanner.count(); ++i) visit(found[i].first, found[i].second);
    return;
  }
  const Value value = parse_json(line, where);
  if (!value.is_map()) {
    throw Error(ErrorCode::kBadInput, fmt::format("reading {}: expected an object", where));
  }
  for (const auto& [path, leaf] : value.leaves()) visit_value(path, *leaf, visit);
}

}  // namespace tune
