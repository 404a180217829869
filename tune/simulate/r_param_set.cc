#include "tune/simulate/r_param_set.h"

#include <cctype>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/simulate/refusal.h"

namespace tune {

namespace {

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxParameters = 1000;

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Whether the text is a character of a name, as in R.
bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
}

// Goes over text from an opening parenthesis on, and knows what is inside quotes and how deep it
// is.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}
  // The position of the next `wanted` outside quotes at this depth; npos: there is none.
  std::size_t find(char wanted, int depth, std::size_t from) {
    int at_depth = 0;
    char quote = 0;
    for (std::size_t i = from; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quote != 0) {
        if (c == quote) quote = 0;
        continue;
      }
      if (c == ')') --at_depth;
      if (c == wanted && at_depth == depth) return i;
      if (c == '"' || c == '\'') quote = c;
      if (c == '(') ++at_depth;
    }
    return std::string_view::npos;
  }

 private:
  std::string_view text_;
};

// `name = p_dbl(...)`.
RParameter read_parameter(std::string_view item, const std::string& what) {
  const std::size_t equals = item.find('=');
  const std::size_t open = item.find('(');
  const std::size_t close = item.rfind(')');
  if (equals >= open || close == std::string_view::npos || close < open) {
    refuse_file(what, fmt::format("'{}' is not a parameter as in a = p_dbl(lower = 0, upper = 1)",
                                  item.substr(0, 60)));
  }
  std::string_view name = trimmed(item.substr(0, equals));
  if (name.size() > 1 && (name.front() == '"' || name.front() == '`')) {
    name = name.substr(1, name.size() - 2);
  }
  return {std::string(name), std::string(trimmed(item.substr(equals + 1, open - equals - 1))),
          std::string(item.substr(open + 1, close - open - 1))};
}

}  // namespace

bool RParameter::has_tag(std::string_view tag) const {
  const std::size_t tags = arguments.find("tags");
  return tags != std::string::npos &&
         arguments.find(fmt::format("\"{}\"", tag), tags) != std::string::npos;
}

std::vector<RParameter> read_param_set(std::string_view text, std::string_view set,
                                       const std::string& what) {
  if (text.size() > kMaxBytes) refuse_file(what, "it is larger than a megabyte");
  std::size_t begin = text.find(set);
  while (begin != std::string_view::npos && begin > 0 && is_of_name(text[begin - 1])) {
    begin = text.find(set, begin + 1);
  }
  const std::size_t open = begin == std::string_view::npos ? begin : text.find("ps(", begin);
  if (open == std::string_view::npos)
    refuse_file(what, fmt::format("there is no {} = ps(...)", set));
  text.remove_prefix(open + 3);
  Walk walk(text);
  const std::size_t end = walk.find(')', -1, 0);
  if (end == std::string_view::npos) refuse_file(what, fmt::format("{} has no end", set));
  text = text.substr(0, end);
  std::vector<RParameter> parameters;
  Walk items(text);
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(items.find(',', 0, from), text.size());
    const std::string_view item = trimmed(text.substr(from, comma - from));
    if (!item.empty()) parameters.push_back(read_parameter(item, what));
    if (parameters.size() > kMaxParameters) {
      refuse_file(what, fmt::format("there are more than {} parameters", kMaxParameters));
    }
    from = comma + 1;
  }
  return parameters;
}

}  // namespace tune
