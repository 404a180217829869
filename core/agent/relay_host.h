// RelayHost: the driver's side of the relay (relay_desk.h) in a thread of its own, with a socket of
// its own: the driver's loop never waits for the disk that checkpoints come to.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/join_keys.h"

namespace tune {

struct RelayedExperiment {
  std::filesystem::path folder;
  std::string id;
  std::string mark = {};  // of it alone: who says another one is not heard; empty: all are
};

class RelayHost {
 public:
  // Listens at once. Throws Error (kProcess).
  RelayHost(const std::vector<std::string>& addresses, int port, const JoinKeys& keys,
            const RelayedExperiment& experiment);
  ~RelayHost();

  int port() const;
  void admit(const std::string& join_public_key);
  void admit_also(const std::string& join_public_key);
  std::vector<std::string> take_refused();  // connections, as DriverEndpoint's

 private:
  struct Keeper;
  std::unique_ptr<Keeper> keeper_;
};

}  // namespace tune
