// Hosts of a test: network namespaces of this machine with a switch between them. Each sees the
// files of this machine but for folders that a command names. Needs root and iproute2.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tune {

class Hosts {
 public:
  // Where there can be none it says that the test is skipped.
  static bool are_missing();
  // The same for lose() and mute(), which need nftables.
  static bool cannot_lose();

  explicit Hosts(int count);
  ~Hosts();
  Hosts(const Hosts&) = delete;

  // The command on that host, from 0, where these folders are empty. The network is eth0 of
  // the first, eth1 of the second: no two are alike, as no two addresses are.
  std::vector<std::string> on(int host, const std::vector<std::string>& command,
                              const std::vector<std::filesystem::path>& hidden = {}) const;
  // What is sent to the host, or by it, is lost without a word from then on; until it is mended.
  void cut(int host) const;
  void mend(int host) const;
  // The same of what is sent by the host alone: it hears, and nobody hears it. Needs nftables.
  void mute(int host) const;
  void unmute() const;
  // Of all packets between hosts so many of a hundred are lost from then on, each by chance.
  void lose(int percent) const;
  bool has_lost_some() const;

 private:
  std::string name(int host) const;
  std::string names_;
  int count_;
};

}  // namespace tune
