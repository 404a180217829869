// Messages and events as lines of a trace.
#pragma once

#include <string>

#include "core/agent_contract.h"
#include "tune/control/events.h"

namespace tune::simulator {

std::string describe(const AgentEvent& event);
std::string describe(const Command& command);
std::string describe(const Event& event);
std::string describe(const Record& record);

}  // namespace tune::simulator
