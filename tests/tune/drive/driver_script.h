// A driver's machine, and agents that speak to it by links.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tune/drive/driver_machine.h"

namespace tune::testing {

using namespace std::chrono_literals;

// Of a warning that an agent told.
inline std::string text_of(const Event& event) {
  return std::get<Warning>(std::get<FromAgent>(event).event).text;
}
template <class T>
bool is(const Event& event) {
  return std::holds_alternative<T>(event);
}

class DriverScript {
 public:
  explicit DriverScript(bool ends_with_agent = true)
      : DriverScript(DriverMachine::Options{.ends_with_agent = ends_with_agent}) {}
  explicit DriverScript(DriverMachine::Options options) : machine(options) {
    machine.begin(now, 0s);
  }

  // An agent's frame arrives.
  void hear(const std::string& identity, const std::vector<AgentEvent>& events = {}) {
    Link& link = links_.try_emplace(identity, Link(1)).first->second;
    for (const AgentEvent& event : events) link.send(encoded(event));
    std::vector<std::string> frames = link.frames();
    if (frames.empty()) frames.push_back(link.heartbeat());
    std::vector<Peers::Told> all;
    for (const std::string& frame : frames) peers.receive(identity, frame, now, all);
    for (Peers::Told& told : all) machine.on_told(std::move(told));
  }
  void hear_text(const std::string& identity, const std::string& text) {
    hear(identity, {Warning{text}});
  }
  // Time passes in small steps.
  void pass(DriverMachine::Time time) {
    for (const DriverMachine::Time end = now + time; now < end;) {
      now += DriverMachine::kLookEvery;
      machine.on_time(now, peers);
    }
  }
  std::vector<Event> turn(std::optional<ExperimentTime> deadline = {}) {
    contents = machine.next_turn(now, deadline, peers).value_or(TurnContents{});
    return contents.events;
  }

  DriverMachine::Time now = 100s;
  DriverMachine machine;
  Peers peers{1};
  TurnContents contents;  // of the newest turn

 private:
  std::map<std::string, Link> links_;
};

inline AgentHello joined_hello() {
  AgentHello hello;
  hello.joined = true;
  return hello;
}

}  // namespace tune::testing
