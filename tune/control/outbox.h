// Outbox: collects the consequences of an event from the parts of the controller. Commands and
// removals are gathered for the driver; records are passed on at once and in order. Pure.
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
  // The commands and removals since open.
  Effects close();

  void tell(const Record& record) const { (*sink_)(record); }
  void notice(std::string text) const { tell(Notice{std::move(text)}); }
  void send(AgentNumber agent, Command command);
  // To the node that leads the trial's attempt, unless its part is over.
  void send_to_lead(const Trial& trial, Command command);
  void remove(TrialNumber trial, const CheckpointId& checkpoint);
  void settle(TrialNumber trial, AttemptNumber lost);
  void answer(OrderAnswer answer) { effects_.answers.push_back(std::move(answer)); }

 private:
  const Sink* sink_ = nullptr;
  Effects effects_;
};

}  // namespace tune
