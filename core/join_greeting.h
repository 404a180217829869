// The greeting of a machine that joins: its name in the connection (the routing id, at most 255
// bytes), which the driver reads before it decodes anything that the machine says. A build that
// speaks another contract, or is of another version, is told so in words and is not heard at all.
// The form of the greeting and of the refusal therefore never change. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tune {

struct Greeting {
  std::uint32_t contract = 0;
  std::string build;
  std::string name;  // unique among the agents of an experiment, one for each life of an agent
};

std::string to_text(const Greeting& greeting);  // "join/7/0.9.0/node-3-4711-17"
bool is_greeting(std::string_view identity);    // the driver's own agent has another name
// The reason why a machine with this identity is refused by a driver of this contract and build;
// nothing: it is not.
std::optional<std::string> why_refused(std::string_view identity, std::uint32_t contract,
                                       std::string_view build);

// A frame that says why; no frame of a Link begins like it.
std::string refusal_frame(std::string_view why);
std::optional<std::string> refusal_in(std::string_view frame);

}  // namespace tune
