// JSON: experiment.json, run.json, params.json, the values of --set.
#include "core/json.h"
#include "core/quick_json.h"

#include "fuzz/check.h"
#include "tune/results/result_lines.h"

namespace {

using namespace tune;

// NaN is never in JSON, so that equal values compare as equal.
void read_quickly(std::string_view text) {
  const auto quick = quick_json(text);
  if (!quick) return;
  const Value general = parse_any_json(text, "fuzz");
  fuzz::require(*quick == general, "the quick reader gives what the general one does");
  fuzz::require(to_json(*quick) == to_json(general), "with the same types");
}

void write_and_read(std::string_view text) {
  const Value value = parse_json(text, "fuzz");
  const std::string written = to_json(value);
  fuzz::require(to_json(parse_json(written, "written")) == written, "what is written reads back");
  fuzz::require(parse_json(to_json(value, 2), "pretty") == parse_json(written, "written"),
                "pretty text says the same");
}

}  // namespace

TUNE_FUZZ_TARGET(json)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  read_quickly(text);
  fuzz::refused_as(ErrorCode::kBadInput, [&] { write_and_read(text); });
  fuzz::refused_as(ErrorCode::kBadInput, [&] { result_from_line(text, "a line"); });
  fuzz::refused_as(ErrorCode::kBadInput, [&] { config_from_json(text, "params.json"); });
  return 0;
}
