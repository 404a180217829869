// Input of the page's server: the words of a request, results, events, and the columns that are
// made of them.
#include <memory>

#include "core/json.h"
#include "fuzz/check.h"
#include "tune/view/columns_blob.h"
#include "tune/view/config_forms.h"
#include "tune/view/guard.h"
#include "tune/view/history.h"
#include "tune/view/trial_table.h"

namespace {

using namespace tune;
using namespace tune::view;

// The lines of the text.
template <class Visit>
void each_line(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void ask(std::string_view text) {
  static const Guard guard("0123456789abcdef", "fedcba9876543210", {.port = 8311});
  Asked asked;
  std::size_t line = 0;
  each_line(text, [&](std::string_view words) {
    switch (line++ % 6) {
      case 0:
        asked.method = words;
        break;
      case 1:
        asked.target = words;
        break;
      case 2:
        asked.hosts.emplace_back(words);
        break;
      case 3:
        asked.origins.emplace_back(words);
        break;
      case 4:
        asked.cookies = words;
        break;
      default:
        asked.authorization = words;
    }
  });
  const Pass pass = guard.check(asked);
  fuzz::require(pass.kind != Pass::Kind::kGranted || text.find("fedcba9876543210") != text.npos ||
                    text.find("0123456789abcdef") != text.npos,
                "nothing is granted without a secret");
}

void make_columns(std::string_view text) {
  TrialTable table("loss");
  History history;
  std::uint32_t number = 0;
  each_line(text, [&](std::string_view line) {
    const std::size_t row = table.add(number % 7, number);
    ++number;
    fuzz::refused_as(ErrorCode::kBadInput, [&] { table.add_result(row, line, "a line", number); });
    fuzz::refused_as(ErrorCode::kBadInput, [&] { history.add(line, "a line"); });
    fuzz::refused_as(ErrorCode::kBadInput, [&] {
      const Value value = parse_json(line, "a line");
      if (!value.is_map()) return;
      table.set_config(row, value, number);
      as_yaml(value);
      as_cpp(value);
    });
  });
  ColumnsBlob blob;
  for (const ParameterColumn& column : table.parameters()) {
    fuzz::require((column.is_words ? column.codes.size() : column.numbers.size()) == table.size(),
                  "a parameter has a value of each trial");
    if (column.is_words) blob.add(column.name, column.codes), blob.add_words(column.words);
  }
  for (const MetricColumn& column : table.metrics()) {
    fuzz::require(column.last.size() == table.size(), "a metric has a value of each trial");
    blob.add(column.name, column.last);
  }
  fuzz::require(blob.finish(Value::make_map()).starts_with("TVC1"),
                "columns begin with their mark");
}

}  // namespace

TUNE_FUZZ_TARGET(page)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  ask(text);
  make_columns(text);
  return 0;
}
