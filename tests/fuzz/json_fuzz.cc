// JSON: experiment.json, run.json, params.json, the values of --set.
#include "core/json.h"

#include "fuzz/check.h"
#include "tune/results/result_lines.h"

namespace {

using namespace tune;

void write_and_read(std::string_view text) {
  const Value value = parse_json(text, "fuzz");
  const std::string written = to_json(value);
  fuzz::require(to_json(parse_json(written, "written")) == written, "what is written reads back");
  fuzz::require(parse_json(to_json(value, 2), "pretty") == parse_json(written, "written"),
                "pretty text says the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::refused_as(ErrorCode::kBadInput, [&] { write_and_read(text); });
  fuzz::refused_as(ErrorCode::kBadInput, [&] { result_from_line(text, "a line"); });
  fuzz::refused_as(ErrorCode::kBadInput, [&] { config_from_json(text, "params.json"); });
  return 0;
}
