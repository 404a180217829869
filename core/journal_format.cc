#include "core/journal_format.h"

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

std::uint32_t format_of(std::string_view entry) {
  PackReader in(entry);
  const std::size_t fields = in.array();
  if (fields < 4) return kFirstJournalFormat;
  for (int i = 0; i < 3; ++i) in.skip();
  std::uint32_t format = 0;
  decode(in, format);
  return format;
}

}  // namespace

void refuse_newer_format(std::uint32_t format) {
  if (format <= kJournalFormat) return;
  throw Error(
      ErrorCode::kProtocol,
      fmt::format("it was written by a newer tune, in format {} of the journal, and this one "
                  "reads up to {}: nothing was changed, go on with the newer tune",
                  format, kJournalFormat));
}

Turn turn_of(std::string_view entry) {
  Turn turn;
  try {
    PackReader in(entry);
    decode(in, turn);
    in.expect_end();
  } catch (const Error&) {
    refuse_newer_format(format_of(entry));
    throw;
  }
  refuse_newer_format(turn.format);
  return turn;
}

}  // namespace tune
