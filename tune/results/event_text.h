// EventText: the lines of events.jsonl as records make them: EventsLog writes them, `tune replay`
// compares them. Described in tune/README.md, "Events".
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "tune/control/events.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class EventText {
 public:
  explicit EventText(const ExperimentSpec& spec);

  // Appends the record's line, if it has one.
  void record(const Record& record, WallTime wall);
  const std::string& text() const { return text_; }
  std::string take() { return std::exchange(text_, {}); }

 private:
  class Line;

  template <class Other>  // results and checkpoints have files of their own
  void on(const Other&, WallTime) {}
  void on(const DriverBegan& began, WallTime wall);
  void on(const NodeJoined& joined, WallTime wall);
  void on(const NodeReturned& returned, WallTime wall);
  void on(const NodeLeft& left, WallTime wall);
  void on(const PlaceSetAside& set_aside, WallTime wall);
  void on(const PlaceTakenBack& taken_back, WallTime wall);
  void on(const TrialProposed& proposed, WallTime wall);
  void on(const AttemptBegan& began, WallTime wall);
  void on(const RungReached& reached, WallTime wall);
  void on(const VerdictGiven& given, WallTime wall);
  void on(const AttemptOver& over, WallTime wall);
  void on(const TrialReplaced& replaced, WallTime wall);
  void on(const AttemptFailed& failed, WallTime wall);
  void on(const TrialChanged& changed, WallTime wall);
  void on(const Notice& notice, WallTime wall);
  void on(const DriverNotice& notice, WallTime wall);
  void on(const UserActed& acted, WallTime wall);
  void on(const AllocationTold& told, WallTime wall);
  void on(const PoolTold& told, WallTime wall);
  void on(const ExperimentOver& over, WallTime wall);

  Line line(WallTime wall, std::string_view event);
  Line line(WallTime wall, std::string_view event, const Trial& trial);

  std::string experiment_;
  std::string text_;
};

}  // namespace tune
