// Outbox: where the parts of the controller put what an event leads to. Commands and
// removals are gathered for the driver, records are told at once and in order. Pure.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "tune/control/events.h"

namespace tune {

class Outbox {
 public:
  using Sink = std::function<void(const Record&)>;

  // Between open and close, records go to `sink`, which outlives that time.
  void open(const Sink& sink) { sink_ = &sink; }
  // What was sent and removed since open.
  Effects close();

  void tell(const Record& record) const { (*sink_)(record); }
  void notice(std::string text) const { tell(Notice{std::move(text)}); }
  void send(AgentNumber agent, Command command);
  void remove(TrialNumber trial, const CheckpointId& checkpoint);
  void settle(TrialNumber trial, AttemptNumber lost);

 private:
  const Sink* sink_ = nullptr;
  Effects effects_;
};

}  // namespace tune
