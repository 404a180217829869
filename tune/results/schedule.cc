#include "tune/results/schedule.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "tune/results/result_lines.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

// A line "replaced" of events.jsonl.
struct Replaced {
  std::uint64_t iteration = 0;  // of the trial
  std::string from;             // whose checkpoint it went on from,
  std::uint64_t from_iteration = 0;
  Config before;
  Config after;
  std::string reason;
};

using All = std::map<std::string, std::vector<Replaced>>;  // by trial, in order

All read_replacements(const fs::path& file) {
  constexpr std::string_view kEvent = "\"event\":\"replaced\"";
  All all;
  for_each_line(file, [&](std::string_view line, std::size_t number) {
    if (line.find(kEvent) == line.npos) return;
    const std::string where = fmt::format("{}:{}", file.string(), number);
    const Value event = parse_json(line, where);
    if (event.get_or("event", "") != "replaced") return;  // within a text
    const auto config = [&](const char* key) {
      return config_from_json(to_json(event.at(key)), where);
    };
    all[event.get<std::string>("trial")].push_back(
        {event.get<std::uint64_t>("iteration"), event.get<std::string>("from"),
         event.get<std::uint64_t>("from_iteration"), config("old"), config("new"),
         event.get<std::string>("reason")});
  });
  return all;
}

// A moment of a trial: its state after that iteration of its own.
struct Moment {
  std::string trial;
  std::uint64_t iteration = 0;
};

class Lineage {
 public:
  Lineage(fs::path experiment, All all) : experiment_(std::move(experiment)), all_(std::move(all)) {
    for (const auto& [trial, some] : all_) left_ += some.size();
  }

  // The entries up to that moment, and the age of the model then.
  std::uint64_t follow(const Moment& moment, std::vector<ScheduleEntry>& entries) {
    const Replaced* last = nullptr;
    if (const auto found = all_.find(moment.trial); found != all_.end()) {
      for (const Replaced& one : found->second) {
        if (one.iteration < moment.iteration) last = &one;
      }
    }
    if (last == nullptr) {
      entries.push_back({0, first_config(moment.trial), moment.trial, 0, {}});
      return moment.iteration;
    }
    if (left_-- == 0) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("following trial {} back in {}: its replacements go in a circle",
                              moment.trial, (experiment_ / "events.jsonl").string()));
    }
    const std::uint64_t age = follow({last->from, last->from_iteration}, entries);
    // Values that no step was done with do not count.
    if (!entries.empty() && entries.back().iteration == age) entries.pop_back();
    entries.push_back({age, last->after, moment.trial, last->iteration, last->reason});
    return age + (moment.iteration - last->iteration);
  }

 private:
  Config first_config(const std::string& trial) const {
    const auto found = all_.find(trial);
    if (found != all_.end()) return found->second.front().before;
    const fs::path file = experiment_ / trial / "params.json";
    return config_from_json(read_file(file), file.string());
  }

  fs::path experiment_;
  All all_;
  std::size_t left_ = 0;  // steps back that there can be
};

}  // namespace

Config config_at(const fs::path& experiment, const std::string& trial, std::uint64_t iteration) {
  const All all = read_replacements(experiment / "events.jsonl");
  const fs::path file = experiment / trial / "params.json";
  const auto found = all.find(trial);
  if (found == all.end()) return config_from_json(read_file(file), file.string());
  const Replaced* last = nullptr;
  for (const Replaced& one : found->second) {
    if (one.iteration < iteration) last = &one;
  }
  return last == nullptr ? found->second.front().before : last->after;
}

std::vector<ScheduleEntry> read_schedule(const fs::path& experiment, const std::string& trial) {
  Lineage lineage(experiment, read_replacements(experiment / "events.jsonl"));
  std::vector<ScheduleEntry> entries;
  lineage.follow({trial, std::numeric_limits<std::uint64_t>::max()}, entries);
  return entries;
}

}  // namespace tune
