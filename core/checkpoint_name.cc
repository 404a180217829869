#include "core/checkpoint_name.h"

#include <charconv>

#include <fmt/format.h>

namespace tune {

namespace {

constexpr std::string_view kFinal = "checkpoint_";
constexpr std::string_view kNotFinal = ".checkpoint_";
constexpr std::string_view kAttempt = "-a";
constexpr std::string_view kTemporary = ".tmp-";
constexpr std::string_view kRemoved = ".tmp-gone";

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string checkpoint_name(std::uint64_t iteration, AttemptNumber attempt) {
  if (attempt.value <= 1) return fmt::format("{}{:06}", kFinal, iteration);
  return fmt::format("{}{:06}{}{}", kFinal, iteration, kAttempt, attempt.value);
}

std::optional<CheckpointId> checkpoint_of_name(std::string_view name) {
  if (!name.starts_with(kFinal)) return std::nullopt;
  std::string_view iteration = name.substr(kFinal.size());
  std::optional<std::uint32_t> attempt = 1;
  if (const std::size_t at = iteration.find(kAttempt); at != std::string_view::npos) {
    attempt = number_in<std::uint32_t>(iteration.substr(at + kAttempt.size()));
    iteration = iteration.substr(0, at);
  }
  const auto number = number_in<std::uint64_t>(iteration);
  if (!number || !attempt) return std::nullopt;
  const CheckpointId id{*number, {*attempt}};
  if (checkpoint_name(id.iteration, id.attempt) != name) return std::nullopt;
  return id;
}

std::string temporary_checkpoint_name(std::uint64_t iteration, AttemptNumber attempt) {
  return fmt::format("{}{:06}{}{}", kNotFinal, iteration, kTemporary, attempt.value);
}

std::string checkpoint_part_name(std::uint64_t iteration, AttemptNumber attempt,
                                 std::uint32_t node) {
  return fmt::format("{}{:06}.part-{}{}{}", kNotFinal, iteration, node, kTemporary, attempt.value);
}

std::string incoming_part_name(std::uint64_t iteration, AttemptNumber attempt, std::uint32_t node) {
  return fmt::format("{}{:06}.part-{}.new{}{}", kNotFinal, iteration, node, kTemporary,
                     attempt.value);
}

std::string replaced_checkpoint_name(AttemptNumber attempt) {
  return fmt::format("{}old{}{}", kNotFinal, kTemporary, attempt.value);
}

std::string removed_checkpoint_name(std::string_view name) {
  return fmt::format(".{}{}", name, kRemoved);
}

bool is_removed_checkpoint(std::string_view name) {
  return name.starts_with(kNotFinal) && name.ends_with(kRemoved);
}

std::optional<AttemptNumber> attempt_of_temporary(std::string_view name) {
  const std::size_t at = name.rfind(kTemporary);
  if (!name.starts_with(kNotFinal) || at == std::string_view::npos) return std::nullopt;
  const auto attempt = number_in<std::uint32_t>(name.substr(at + kTemporary.size()));
  if (!attempt) return std::nullopt;
  return AttemptNumber{*attempt};
}

}  // namespace tune
