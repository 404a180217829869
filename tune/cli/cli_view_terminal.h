// `tune view --terminal`: an experiment as text pictures. Used by cli.cc and its tests.
#pragma once

#include <string>

namespace tune {

int view_in_terminal(const std::string& directory);

}  // namespace tune
