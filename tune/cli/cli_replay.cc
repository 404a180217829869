// tune replay.
#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"
#include "tune/cli/cli_insight.h"
#include "tune/drive/journal_reader.h"
#include "tune/drive/replay.h"
#include "tune/results/experiment_folder.h"

namespace tune {

namespace {

void refuse_functions(const std::string& directory, const ExperimentSpec& spec) {
  const std::vector<PlacedDomain> all = spec.options.config.placed_domains();
  const auto function =
      std::ranges::find_if(all, [](const PlacedDomain& one) { return one.domain->is_function(); });
  if (function == all.end()) return;
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("replaying {}: {} is computed by a function of its program, without which "
                  "its configurations cannot be made again",
                  directory, function->path));
}

std::string counted(std::uint64_t count, const char* what) {
  const char* end = std::string_view(what).ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : end);
}

Value to_value(const ReplayReport& report) {
  Value value{{"same", !report.difference.has_value()},
              {"from", report.from ? Value(to_string(*report.from)) : Value()},
              {"through", to_string(report.through)},
              {"events", report.events},
              {"verdicts", report.verdicts},
              {"launches", report.launches},
              {"waits", report.waits},
              {"proposals", report.proposals},
              {"other_numbers", report.other_numbers},
              {"unasked", report.unasked},
              {"configurations", report.configurations},
              {"lines", report.lines}};
  if (!report.remark.empty()) value.set("remark", report.remark);
  if (!report.difference) return value;
  const ReplayReport::Difference& found = *report.difference;
  value.set("difference", Value{{"event", found.event},
                                {"entry", found.entry},
                                {"what", found.what},
                                {"journaled", found.journaled},
                                {"replayed", found.replayed}});
  return value;
}

void print(const ReplayReport& report) {
  fmt::print("{} of the journal's entries up to {}{}\n", counted(report.events, "event"),
             to_string(report.through),
             report.from ? fmt::format(", after the snapshot of {}: what was before it is not in "
                                       "the journal any more",
                                       to_string(*report.from))
                         : ", from its beginning");
  fmt::print("the same: {}, {}, {} made again, {}, {}, {} of events.jsonl\n",
             counted(report.verdicts, "verdict"), counted(report.launches, "launch"),
             counted(report.proposals, "proposal"), counted(report.waits, "wait"),
             counted(report.configurations, "configuration"), counted(report.lines, "line"));
  if (report.other_numbers > 0) {
    fmt::print("{} with other expectations of the model: another version or machine made them\n",
               counted(report.other_numbers, "proposal"));
  }
  if (report.unasked > 0) {
    fmt::print("{} not made again: asked for before the snapshot\n",
               counted(report.unasked, "answer"));
  }
  if (!report.remark.empty()) fmt::print("{}\n", report.remark);
  if (!report.difference) {
    fmt::print("the journal leads to the same decisions\n");
    return;
  }
  const ReplayReport::Difference& found = *report.difference;
  fmt::print("first difference: event {}, entry {}: {}\n  then:     {}\n  replayed: {}\n",
             found.event, found.entry, found.what, found.journaled, found.replayed);
}

}  // namespace

int replay_command(const ReplayArguments& arguments) {
  const ExperimentSpec spec = read_spec(arguments.directory);
  refuse_functions(arguments.directory, spec);
  JournalReader journal(arguments.directory);
  const bool is_over =
      journal.record().state == RunState::kFinished && !is_live(arguments.directory);
  const ReplayReport report = replay(journal.store(), spec, arguments.directory, is_over);
  if (arguments.json) {
    fmt::print("{}\n", to_json(to_value(report)));
  } else {
    print(report);
  }
  return report.difference ? exit_code(ErrorCode::kTrialFailed) : 0;
}

}  // namespace tune
