// The needs of a driver's own agent beside its link, to outlive the driver: the token by which it
// joins, and the sign that the next driver looks for.
#pragma once

#include <optional>
#include <string>

#include "core/join_token.h"

namespace tune {

// The token that the driver tells by its socket. Nothing: the driver is gone.
std::optional<JoinToken> token_of_driver(int driver_alive_fd);

// The sign (kStaysFile) in its runtime folder. A sign that cannot be written costs the agent the
// next driver, and nothing else.
void show_that_it_stays(const std::string& runtime_directory);
void show_that_it_ends(const std::string& runtime_directory);

}  // namespace tune
