// The commands that change a sweep while it runs: stop, pause, unpause, retry, note, add and
// change. All return an exit code and throw Error. Used by cli.cc and its tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tune {

struct OrderArguments {
  std::string what;  // "stop", "pause" ...
  std::string directory;
  std::vector<std::string> trials;
  std::vector<std::string> configs;  // YAML or JSON, of `add`
  std::string text;                  // of `note`
  std::int64_t num_samples = 0;      // of `change`
  std::string reason;
  bool json = false;
};
// 2 when one of several was refused: the others are carried out.
int order_command(const OrderArguments& arguments);

struct ListArguments {
  std::string storage = "results";
  bool json = false;
};
int list_command(const ListArguments& arguments);

// Adds these commands; the one that the user gives is put into `chosen`.
void add_orders(CLI::App& app, std::function<int()>& chosen);

}  // namespace tune
