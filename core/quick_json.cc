#include "core/quick_json.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

#include "core/json.h"

namespace tune {

namespace {

class QuickReader {
 public:
  explicit QuickReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool read(Value& value) {
    if (!read_value(value, 0)) return false;
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  // After spaces.
  bool take(char wanted) {
    skip_space();
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(word))
      return false;
    at_ += word.size();
    return true;
  }

  bool read_value(Value& value, int depth) {
    skip_space();
    if (at_ == end_) return false;
    switch (*at_) {
      case '{':
        return ++at_, read_map(value, depth + 1);
      case '[':
        return ++at_, read_list(value, depth + 1);
      case '"': {
        std::string_view text;
        if (!read_text(text)) return false;
        value = Value(text);
        return true;
      }
      case 't':
        return take_word("true") && (value = Value(true), true);
      case 'f':
        return take_word("false") && (value = Value(false), true);
      case 'n':
        return take_word("null") && (value = Value(), true);
      default:
        return read_number(value);
    }
  }

  bool read_text(std::string_view& text) {
    if (!take('"')) return false;
    const char* const begin = at_;
    while (at_ != end_ && *at_ >= 0x20 && *at_ < 0x7f && *at_ != '"' && *at_ != '\\') ++at_;
    if (at_ == end_ || *at_ != '"') return false;
    text = {begin, static_cast<std::size_t>(at_ - begin)};
    ++at_;
    return true;
  }

  bool read_map(Value& value, int depth) {
    value = Value::make_map();
    if (depth > kMaxNesting) return false;
    if (take('}')) return true;
    do {
      std::string_view key;
      skip_space();
      if (!read_text(key) || key.empty() || key.find('/') != key.npos || !take(':')) return false;
      for (const Member& member : value.map()) {
        if (member.key == key) return false;
      }
      value.map().emplace_back(std::string(key), Value());
      if (!read_value(value.map().back().value, depth)) return false;
    } while (take(','));
    return take('}');
  }

  bool read_list(Value& value, int depth) {
    value = Value::make_list({});
    if (depth > kMaxNesting) return false;
    if (take(']')) return true;
    do {
      value.list().emplace_back();
      if (!read_value(value.list().back(), depth)) return false;
    } while (take(','));
    return take(']');
  }

  const char* after_digits(const char* from) const {
    while (from != end_ && *from >= '0' && *from <= '9') ++from;
    return from;
  }

  // from_chars alone reads more than JSON has: "inf", "01", "1.".
  bool read_number(Value& value) {
    constexpr std::ptrdiff_t kSureDigits = 18;
    const char* const begin = at_;
    const char* const whole = begin + (*begin == '-' ? 1 : 0);
    const char* stop = after_digits(whole);
    const std::ptrdiff_t digits = stop - whole;
    if (digits == 0 || (digits > 1 && *whole == '0')) return false;
    bool is_whole = true;
    if (stop != end_ && *stop == '.') {
      const char* const fraction = stop + 1;
      stop = after_digits(fraction);
      if (stop == fraction) return false;
      is_whole = false;
    }
    if (stop != end_ && (*stop == 'e' || *stop == 'E')) {
      const char* exponent = stop + 1;
      if (exponent != end_ && (*exponent == '+' || *exponent == '-')) ++exponent;
      stop = after_digits(exponent);
      if (stop == exponent) return false;
      is_whole = false;
    }
    at_ = stop;
    if (!is_whole) return read_as<double>(begin, stop, value);
    return digits <= kSureDigits && read_as<std::int64_t>(begin, stop, value);
  }
  template <class Number>
  static bool read_as(const char* begin, const char* stop, Value& value) {
    Number number{};
    const auto [end, error] = std::from_chars(begin, stop, number);
    if (error != std::errc() || end != stop) return false;
    value = Value(number);
    return true;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

std::optional<Value> quick_json(std::string_view text) {
  Value value;
  if (!QuickReader(text).read(value)) return std::nullopt;
  return value;
}

}  // namespace tune
