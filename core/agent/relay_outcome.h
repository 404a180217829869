// The outcome of an agent's orders to carry checkpoints and output (core/agent/relay_client.h,
// core/agent/object_carrier.h).
#pragma once

#include <string>
#include <variant>

#include "core/agent_contract.h"
#include "core/ids.h"

namespace tune {

inline constexpr const char* kNoDriver = "no driver takes it";  // the error of what is given up

struct RelayReached {};  // the other side has answered for the first time
struct RelayRefused {    // it has refused, and this machine cannot take part
  std::string why;
  bool is_of_clock = false;  // its credentials are not to blame
};
struct RelayStored {
  CheckpointSaved saved;
  std::string error;      // why it is not stored; empty: it is
  bool is_newer = false;  // not stored, as a newer one takes its place
  bool is_of_trial = false;  // the error: its ranks have written what cannot be put together
};
struct RelayFetched {
  TrialNumber trial;
  AttemptNumber attempt;
  std::string error;
  bool is_of_agent = false;  // the error: its own folder cannot be written
};
struct RelayPluginFetched {  // the plugin is in the agent's folder, in kFetchedPlugin
  std::string error;
  std::string fingerprint = {};  // of that file
};
// The output of that attempt is in the experiment's folder, but for what is left out.
struct RelayOutputDone {
  TrialNumber trial;
  AttemptNumber attempt;
};
struct RelayTail {  // the last lines of a rank
  TrialNumber trial;
  AttemptNumber attempt;
  std::uint32_t rank = 0;
  std::string text;
};
struct RelayNotice {  // for the user, once
  std::string text;
};
using RelayOutcome = std::variant<RelayReached, RelayRefused, RelayStored, RelayFetched,
                                  RelayPluginFetched, RelayOutputDone, RelayTail, RelayNotice>;

}  // namespace tune
