// A regular expression with named groups that is searched for in lines, in time linear in the line:
// RE2's syntax (no backreferences, no lookaround), (?P<name>...) names a group. Pure.
//
// Not std::regex, whose time grows exponentially with some expressions and whose recursion a long
// line overflows: a line comes from a program that may print anything.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tune {

class LinePattern {
 public:
  // Throws Error (kBadInput): not a regular expression, without a named group, or one that would
  // take too much memory.
  explicit LinePattern(const std::string& expression);
  ~LinePattern();
  LinePattern(LinePattern&&) noexcept;
  LinePattern& operator=(LinePattern&&) noexcept;

  using Found = std::vector<std::pair<std::string, std::string_view>>;  // groups that took part
  // Whether the line has it; then `found` has the named groups in the order of the expression. The
  // texts point into the line.
  bool find(std::string_view line, Found& found) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tune
