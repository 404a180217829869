#include "tune/results/last_results.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "core/error.h"
#include "tune/control/trial_book.h"

namespace tune {

void LastResults::record(const Record& record, const Telling& telling) {
  if (const auto* joined = std::get_if<NodeJoined>(&record)) {
    hostnames_[joined->agent] = word(joined->hello.hostname);
  } else if (const auto* cut = std::get_if<ResultsCut>(&record)) {
    const std::uint32_t trial = cut->trial.number.value;
    if (trial < entries_.size() && entries_[trial].iteration > cut->iteration) entries_[trial] = {};
  } else if (const auto* replaced = std::get_if<TrialReplaced>(&record)) {
    // The configuration that its last result came of is known to the files alone.
    const std::uint32_t trial = replaced->trial.number.value;
    if (trial < entries_.size()) entries_[trial] = {};
  } else if (const auto* result = std::get_if<ResultRecorded>(&record)) {
    const Trial& trial = result->trial;
    if (trial.number.value >= entries_.size()) entries_.resize(trial.number.value + 1);
    Entry& entry = entries_[trial.number.value];
    entry.iteration = result->report.iteration;
    entry.second = unix_second(telling.wall);
    entry.bytes = static_cast<std::uint32_t>(result->report.result.bytes.size());
    entry.done = result->done;
    const auto host = trial.placement ? hostnames_.find(trial.placement->agent) : hostnames_.end();
    entry.hostname = host == hostnames_.end() ? 0 : host->second;
    const auto [ip, pid] = split_location(trial.location);
    if (words_[entry.node_ip] != ip) entry.node_ip = word(ip);
    entry.pid = pid;
  }
}

std::uint32_t LastResults::word(std::string_view text) {
  const auto known = index_.find(text);
  if (known != index_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(words_.size());
  words_.emplace_back(text);
  index_.emplace(text, number);
  return number;
}

bool LastResults::make(ResultText& text, const Trial& trial, const ExperimentTags& tags) {
  if (!trial.last || trial.number.value >= entries_.size()) return false;
  const Entry& entry = entries_[trial.number.value];
  const std::size_t bytes = trial.last->result.bytes.size();
  const bool is_known =
      entry.iteration == trial.last->iteration && entry.bytes == bytes && bytes <= kMaxKeptBytes;
  if (!is_known) return false;
  const std::string tag = tags.of(trial.number, trial.config);
  make_result(text, *trial.last,
              {.trial_id = {},
               .experiment_tag = tag,
               .done = entry.done,
               .second = entry.second,
               .date = dates_.of(entry.second),
               .hostname = words_[entry.hostname],
               .node_ip = words_[entry.node_ip],
               .pid = entry.pid},
              ResultField::kTrialId);
  return true;
}

// ---- Snapshots ----------------------------------------------------------------------------------

std::future<std::string> LastResults::save() {
  PackWriter out;
  encode(out, words_);
  out.map(hostnames_.size());
  for (const auto& [agent, hostname] : hostnames_) encode(out, agent), encode(out, hostname);
  encode(out, entries_);
  return ready(out.take());
}

void LastResults::restore(std::string_view state) {
  PackReader in(state);
  decode(in, words_);
  hostnames_.clear();
  for (std::size_t left = in.map(); left > 0; --left) {
    AgentNumber agent;
    decode(in, agent);
    decode(in, hostnames_[agent]);
  }
  decode(in, entries_);
  in.expect_end();
  index_.clear();
  for (std::size_t i = 0; i < words_.size(); ++i) index_.emplace(words_[i], i);
  const auto is_word = [this](std::uint32_t word) { return word < words_.size(); };
  const bool fits =
      std::ranges::all_of(
          entries_,
          [&](const Entry& entry) { return is_word(entry.hostname) && is_word(entry.node_ip); }) &&
      std::ranges::all_of(hostnames_, [&](const auto& one) { return is_word(one.second); });
  if (!fits) {
    throw Error(ErrorCode::kProtocol, "reading the journal's snapshot: a node's name is missing");
  }
}

}  // namespace tune
