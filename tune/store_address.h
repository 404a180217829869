// The address of a store as users write it: redis://[[user]:password@]host[:port][/database] or
// unix:///path/to/socket. Form only; nothing is contacted.
#pragma once

#include <string>

namespace tune {

// What is wrong with it and how to write it; empty when it is well formed. A password in it is not
// repeated.
std::string why_bad_store_address(const std::string& address);

}  // namespace tune
