// The address under which other hosts reach this one.
#pragma once

#include <string>

namespace tune {

// Of the interface that routes to `address`, a name or number of another host or of this one. Where
// that is this host's own name for its loopback (Debian's 127.0.1.1), that of the default route. As
// numbers; empty when there is no route. Sends nothing.
std::string own_address_towards(const std::string& address, int port);

}  // namespace tune
