#include "core/line_pattern.h"

#include <re2/re2.h>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {
namespace {

constexpr std::int64_t kMaxBytes = 8 << 20;  // of the compiled expression

re2::RE2::Options quiet() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxBytes);
  // Lines may hold bytes of any encoding.
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  return options;
}

}  // namespace

struct LinePattern::Compiled {
  explicit Compiled(const std::string& text) : expression(text, quiet()) {}
  re2::RE2 expression;
  std::vector<re2::StringPiece> groups;  // of the last match, the whole first
};

LinePattern::LinePattern(const std::string& expression)
    : compiled_(std::make_unique<Compiled>(expression)) {
  const re2::RE2& made = compiled_->expression;
  if (!made.ok()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' is not a regular expression of RE2: {}: {}", expression,
                            made.error(), made.error_arg()));
  }
  if (made.NamedCapturingGroups().empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' names no group: name each metric, as in loss=(?P<loss>\\S+)",
                            expression));
  }
  compiled_->groups.resize(static_cast<std::size_t>(made.NumberOfCapturingGroups()) + 1);
}

LinePattern::~LinePattern() = default;
LinePattern::LinePattern(LinePattern&&) noexcept = default;
LinePattern& LinePattern::operator=(LinePattern&&) noexcept = default;

bool LinePattern::find(std::string_view line, Found& found) const {
  found.clear();
  auto& groups = compiled_->groups;
  const re2::StringPiece text(line.data(), line.size());
  if (!compiled_->expression.Match(text, 0, line.size(), re2::RE2::UNANCHORED, groups.data(),
                                   static_cast<int>(groups.size()))) {
    return false;
  }
  for (const auto& [number, name] : compiled_->expression.CapturingGroupNames()) {
    const re2::StringPiece& group = groups[static_cast<std::size_t>(number)];
    if (group.data() != nullptr) found.emplace_back(name, std::string_view(group.data(), group.size()));
  }
  return true;
}

}  // namespace tune
