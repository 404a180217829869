#include "tune/results/event_text.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/json.h"
#include "core/strings.h"
#include "tune/results/result_fields.h"
#include "tune/search/proposal.h"
#include "tune/spec/experiment_identity.h"

namespace tune {

// One object, appended to a text; bytes that are not UTF-8 become U+FFFD.
class EventText::Line {
 public:
  Line(std::string& text, WallTime wall) : text_(text) {
    const auto passed = std::chrono::floor<std::chrono::milliseconds>(wall).count();
    text_ += fmt::format("{{\"time\":{}.{:03}", passed / 1000, passed % 1000);
  }
  Line& add(std::string_view key, std::string_view value) {
    name(key);
    append_json_text(text_, value);
    return *this;
  }
  Line& add(std::string_view key, std::int64_t value) {
    name(key);
    append_integer(text_, value);
    return *this;
  }
  Line& add(std::string_view key, std::uint64_t value) {
    return add(key, static_cast<std::int64_t>(value));
  }
  Line& add_number(std::string_view key, double value) {
    name(key);
    append_json_number(text_, value);
    return *this;
  }
  Line& add_texts(std::string_view key, const std::vector<std::string>& values) {
    name(key);
    const char* before = "[";
    for (const std::string& value : values) {
      text_ += std::exchange(before, ",");
      append_json_text(text_, value);
    }
    text_ += values.empty() ? "[]" : "]";
    return *this;
  }
  // [[iteration, value], ...], of several objectives [[iteration, value, value], ...]
  Line& add_values(std::string_view key, const std::vector<ValueAt>& values) {
    name(key);
    const char* before = "[[";
    for (const ValueAt& one : values) {
      text_ += std::exchange(before, ",[");
      append_integer(text_, static_cast<std::int64_t>(one.iteration));
      const std::vector<double> alone = {one.value};
      for (const double value : one.numbers.empty() ? alone : one.numbers) {
        text_ += ',';
        append_json_number(text_, value);
      }
      text_ += ']';
    }
    text_ += values.empty() ? "[]" : "]";
    return *this;
  }
  Line& add_flag(std::string_view key, bool value) {
    name(key);
    text_ += value ? "true" : "false";
    return *this;
  }
  Line& add_config(std::string_view key, const Packed& config) {
    name(key);
    PackReader in(config.bytes);
    append_packed_json(text_, in);
    return *this;
  }
  template <class Numbers>
  Line& add_list(std::string_view key, const Numbers& values) {
    name(key);
    text_ += fmt::format("[{}]", fmt::join(values, ","));
    return *this;
  }
  void end() { text_ += "}\n"; }

 private:
  void name(std::string_view key) { text_.append(",\"").append(key).append("\":"); }
  std::string& text_;
};

EventText::EventText(const ExperimentSpec& spec) : experiment_(experiment_id_of(spec)) {}

void EventText::record(const Record& record, WallTime wall) {
  std::visit([&](const auto& what) { on(what, wall); }, record);
}

// ---- Lines --------------------------------------------------------------------------------------

EventText::Line EventText::line(WallTime wall, std::string_view event) {
  return Line(text_, wall).add("event", event);
}

EventText::Line EventText::line(WallTime wall, std::string_view event, const Trial& trial) {
  Line line(text_, wall);
  line.add("event", event).add("trial", trial_id(experiment_, trial.number));
  line.add("attempt", std::uint64_t{trial.attempt.value});
  return line;
}

void EventText::on(const DriverBegan& began, WallTime wall) {
  Line started = line(wall, "driver_started");
  started.add("epoch", began.epoch);
  if (began.keeps) started.add_flag("keeps", true);
  started.end();
}

void EventText::on(const NodeReturned& returned, WallTime wall) {
  line(wall, "node_returned")
      .add("node", returned.hello.hostname)
      .add("trials", std::uint64_t{returned.trials})
      .end();
}

void EventText::on(const NodeJoined& joined, WallTime wall) {
  const AgentHello& hello = joined.hello;
  line(wall, "node_joined")
      .add("node", hello.hostname)
      .add("ip", hello.ip)
      .add_number("cpus", static_cast<double>(hello.cpu_units) / kUnit)
      .add("gpus", std::uint64_t{hello.gpus.size()})
      .add("memory_bytes", hello.memory_bytes)
      .end();
}

void EventText::on(const NodeLeft& left, WallTime wall) {
  line(wall, "node_left").add("node", left.hello.hostname).add("cause", left.cause).end();
}

void EventText::on(const PlaceSetAside& set_aside, WallTime wall) {
  line(wall, "place_set_aside").add("place", set_aside.place).end();
}

void EventText::on(const PlaceTakenBack& taken_back, WallTime wall) {
  line(wall, "place_taken_back").add("place", taken_back.place).end();
}

void EventText::on(const TrialProposed& proposed, WallTime wall) {
  const Proposal& proposal = proposed.proposal;
  std::vector<std::string> neighbours;
  for (const TrialNumber one : proposal.neighbours) {
    neighbours.push_back(trial_id(experiment_, one));
  }
  Line line = this->line(wall, "proposed", proposed.trial);
  line.add("origin", origin_name(proposal.origin));
  line.add("results_known", std::uint64_t{proposal.results_known});
  line.add("pending_known", std::uint64_t{proposal.pending_known});
  if (proposal.expected && proposal.expected->has_target()) {
    line.add_number("mean", proposal.expected->mean);
    line.add_number("sd", proposal.expected->standard_deviation);
  }
  if (proposal.expected) line.add_number("acquisition", proposal.expected->acquisition);
  if (proposal.margin > 0) line.add_number("margin", proposal.margin);
  if (proposal.expected || !neighbours.empty()) {
    line.add_texts("neighbours", neighbours);
    line.add_values("neighbour_values", proposal.neighbour_values);
  }
  if (!proposal.model.empty()) line.add("model", proposal.model);
  if (!proposal.note.empty()) line.add("note", proposal.note);
  line.end();
}

void EventText::on(const AttemptBegan& began, WallTime wall) {
  const Trial& trial = began.trial;
  Line line = this->line(wall, "attempt_started", trial);
  line.add("node", began.node);
  line.add("pid", split_location(trial.location).second);
  if (trial.placement) line.add_list("gpus", trial.placement->gpus);
  line.add("after_iteration", began.restored);
  line.end();
}

void EventText::on(const RungReached& reached, WallTime wall) {
  constexpr const char* kNames[] = {"go_on", "pause", "stop", "replace"};  // by Decision::Kind
  const RungPlace& place = reached.place;
  Line line = this->line(wall, "rung", reached.trial);
  line.add("iteration", reached.iteration);
  line.add_number("milestone", place.milestone);
  line.add_number("value", place.value);
  if (place.cut_off) line.add_number("cut_off", *place.cut_off);
  line.add("rank", place.rank);
  line.add("of", place.of);
  if (place.bracket) line.add("bracket", std::uint64_t{*place.bracket});
  line.add("verdict", kNames[static_cast<std::size_t>(reached.decision)]);
  line.end();
}

void EventText::on(const VerdictGiven& given, WallTime wall) {
  line(wall, "verdict", given.trial)
      .add("iteration", given.iteration)
      .add("verdict", given.kind == StopKind::kPause ? "pause" : "stop")
      .add("reason", given.trial.reason)
      .end();
}

void EventText::on(const TrialReplaced& replaced, WallTime wall) {
  const Trial& trial = replaced.trial;
  Line line = this->line(wall, "replaced", trial);
  line.add("iteration", replaced.iteration);
  line.add("donor", trial_id(experiment_, replaced.donor));
  line.add("from", trial_id(experiment_, replaced.origin.trial));
  line.add("from_iteration", replaced.origin.iteration);
  line.add_config("old", replaced.former);
  line.add_config("new", trial.config);
  line.add("reason", replaced.reason);
  line.end();
}

void EventText::on(const AttemptOver& over, WallTime wall) {
  const AttemptEnded& ended = over.ended;
  Line line = this->line(wall, "attempt_ended", over.trial);
  line.add("outcome", outcome_name(ended.outcome));
  line.add("iteration", over.trial.last ? over.trial.last->iteration : 0);
  if (!ended.cause.empty()) line.add("cause", ended.cause);
  line.end();
}

void EventText::on(const AttemptFailed& failed, WallTime wall) {
  const Failure& failure = *failed.trial.failure;
  line(wall, "failure", failed.trial)
      .add("outcome", outcome_name(failure.outcome))
      .add("rank", std::uint64_t{failure.rank})
      .add("code", std::int64_t{failure.code})
      .add("cause", failure.cause)
      .add("failures", std::uint64_t{failed.trial.failures})
      .add_flag("retried", failed.retried)
      .end();
}

// The ends of attempts tell the status between two attempts.
void EventText::on(const TrialChanged& changed, WallTime wall) {
  const Trial& trial = changed.trial;
  if (!changed.former || !is_over(trial.status)) return;
  line(wall, "trial_ended", trial)
      .add("status", status_name(trial.status))
      .add("iteration", trial.last ? trial.last->iteration : 0)
      .end();
}

void EventText::on(const Notice& notice, WallTime wall) {
  line(wall, "notice").add("text", notice.text).end();
}

void EventText::on(const DriverNotice& notice, WallTime wall) {
  line(wall, "notice").add("text", notice.text).end();
}

void EventText::on(const UserActed& acted, WallTime wall) {
  constexpr const char* kNames[] = {"stop", "pause", "unpause",    "retry",
                                    "add",  "note",  "num_samples"};  // by OrderKind
  const UserOrdered& order = acted.order;
  const bool is_note = order.kind == OrderKind::kNote;
  Line line =
      acted.about == nullptr ? this->line(wall, "order") : this->line(wall, "order", *acted.about);
  line.add("order", kNames[static_cast<std::size_t>(order.kind)]);
  if (acted.about != nullptr && order.kind != OrderKind::kAdd) {
    line.add("iteration", acted.about->last ? acted.about->last->iteration : 0);
  }
  if (order.kind == OrderKind::kAdd) line.add_config("config", acted.about->config);
  if (order.kind == OrderKind::kNumSamples) line.add("num_samples", order.num_samples);
  line.add("user", order.user);
  if (!order.text.empty()) line.add(is_note ? "text" : "reason", order.text);
  line.end();
}

void EventText::on(const AllocationTold& told, WallTime wall) {
  constexpr const char* kNames[] = {"requested", "started", "queued", "running", "ended"};
  const AllocationChanged& change = told.change;
  Line line = this->line(wall, "allocation");
  line.add("number", change.number);
  line.add("state", kNames[static_cast<std::size_t>(change.state)]);
  if (!change.id.empty()) line.add("id", change.id);
  if (!change.host.empty()) line.add("host", change.host);
  if (!change.reason.empty()) line.add("reason", change.reason);
  line.end();
}

void EventText::on(const PoolTold& told, WallTime wall) {
  Line line = this->line(wall, "pool");
  if (told.order.max) line.add("max", std::uint64_t{*told.order.max});
  if (told.order.paused) line.add_flag("paused", *told.order.paused);
  if (!told.order.drained.empty()) line.add("drained", told.order.drained);
  if (!told.order.cause.empty()) line.add("cause", told.order.cause);
  line.end();
}

void EventText::on(const ExperimentOver& over, WallTime wall) {
  Line line = this->line(wall, "experiment_ended");
  line.add("how", over.how);
  if (!over.why.empty()) line.add("why", over.why);
  line.end();
}

}  // namespace tune
