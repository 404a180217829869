#include "tune/search/where_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

constexpr int kMostNested = 64;          // parentheses and signs
constexpr std::size_t kMostShown = 200;  // of a text, in an error

using Step = WhereRule::Step;
using Relation = WhereRule::Relation;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool begins_path(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_in_path(char c) {
  return begins_path(c) || is_digit(c) || c == '.' || c == '/';
}

// Recursive descent: a comparison of sums of products.
class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  ParsedWhere comparison() && {
    sum(0);
    parsed_.relation = relation();
    sum(0);
    skip_blanks();
    if (at_ < text_.size()) refuse_rest();
    return std::move(parsed_);
  }

 private:
  void sum(int depth) {
    product(depth);
    for (char sign = next(); sign == '+' || sign == '-'; sign = next()) {
      ++at_;
      product(depth);
      parsed_.steps.push_back({sign == '+' ? Step::Kind::kPlus : Step::Kind::kMinus});
    }
  }
  void product(int depth) {
    factor(depth);
    while (next() == '*') {
      ++at_;
      factor(depth);
      parsed_.steps.push_back({Step::Kind::kTimes});
    }
  }
  void factor(int depth) {
    if (depth > kMostNested) refuse("is nested too deep");
    const char c = next();
    if (c == '(') {
      ++at_;
      sum(depth + 1);
      if (next() != ')') refuse_here("a ')'");
      ++at_;
    } else if (c == '-') {  // 0 - x
      ++at_;
      parsed_.steps.push_back({Step::Kind::kNumber});
      factor(depth + 1);
      parsed_.steps.push_back({Step::Kind::kMinus});
    } else if (is_digit(c) || c == '.') {
      number();
    } else if (c == '\'' || c == '"') {
      quoted_path(c);
    } else if (begins_path(c)) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && is_in_path(text_[at_])) ++at_;
      add_path(text_.substr(begin, at_ - begin));
    } else {
      refuse_here("a number, a key path or a '('");
    }
  }
  void number() {
    double value = 0;
    const char* end = text_.data() + text_.size();
    const auto [after, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) refuse_here("a number");
    at_ = static_cast<std::size_t>(after - text_.data());
    if (at_ < text_.size() && is_in_path(text_[at_])) refuse_here("an operator after the number");
    parsed_.steps.push_back({Step::Kind::kNumber, value});
  }
  void quoted_path(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) refuse(fmt::format("has a {} without end", quote));
    add_path(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
  }
  void add_path(std::string path) {
    auto& paths = parsed_.paths;
    auto found = std::find(paths.begin(), paths.end(), path);
    if (found == paths.end()) found = paths.insert(found, std::move(path));
    parsed_.steps.push_back(
        {Step::Kind::kValue, 0, static_cast<std::size_t>(found - paths.begin())});
  }
  Relation relation() {
    static constexpr std::array<std::pair<std::string_view, Relation>, 6> kSigns = {
        {{"<=", Relation::kLessEqual},
         {">=", Relation::kGreaterEqual},
         {"==", Relation::kEqual},
         {"!=", Relation::kNotEqual},
         {"<", Relation::kLess},
         {">", Relation::kGreater}}};
    next();
    for (const auto& [sign, relation] : kSigns) {
      if (!std::string_view(text_).substr(at_).starts_with(sign)) continue;
      at_ += sign.size();
      return relation;
    }
    refuse_here("one of + - * < <= > >= == !=");
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  // The next character; zero at the end.
  char next() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  [[noreturn]] void refuse_rest() {
    const std::string rest = text_.substr(at_, kMostShown);
    for (const char* more : {"<", ">", "=", "!", "and", "&"}) {
      if (!rest.starts_with(more)) continue;
      refuse(
          fmt::format("goes on with '{}': one comparison each; of a list of them all hold", rest));
    }
    refuse_here("the end, or one of + - *");
  }
  [[noreturn]] void refuse_here(const char* expected) {
    if (next() == '/') {
      refuse(
          "has a '/' by itself, which belongs to key paths: there is no division, multiply the "
          "other side");
    }
    const std::string found =
        at_ < text_.size() ? fmt::format("'{}'", text_.substr(at_, kMostShown)) : "the end";
    refuse(fmt::format("has {} where {} should stand", found, expected));
  }
  [[noreturn]] void refuse(const std::string& why) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' {}; a constraint is written like 'x < 2 * model/width'",
                            text_.substr(0, kMostShown), why));
  }

  const std::string& text_;
  std::size_t at_ = 0;
  ParsedWhere parsed_;
};

}  // namespace

ParsedWhere parse_where(const std::string& text) {
  return Parser(text).comparison();
}

}  // namespace tune
