#include "cluster/hosts.h"

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "skip.h"

namespace tune {

namespace {

bool succeeds(const std::string& script) {
  return std::system(("{ " + script + "; } >/dev/null 2>&1").c_str()) == 0;
}

void demand(const std::string& script) {
  if (!succeeds(script)) throw std::runtime_error("it failed: " + script);
}

// In the network namespace of a switch.
std::string losing(int percent) {
  return "nft \"table bridge loss { chain forward { type filter hook forward priority 0; numgen "
         "random mod 100 < " +
         std::to_string(percent) + " counter drop; }; }\"";
}

// Of tests that were killed.
constexpr const char* kRemoveLeftOvers =
    "for name in $(ip netns list | grep -o '^tune-test-[0-9]*-[0-9s]*'); do "
    "pid=${name#tune-test-}; [ -d /proc/${pid%-*} ] || ip netns del $name; done";

}  // namespace

bool Hosts::are_missing() {
  const std::string trial = "tune-test-" + std::to_string(getpid()) + "-0";
  const bool works = geteuid() == 0 &&
                     succeeds("ip netns add " + trial + " && ip netns exec " + trial +
                              " ip link add br0 type bridge && ip netns exec " + trial +
                              " sh -c 'mount -t tmpfs tmpfs /mnt'");
  succeeds("ip netns del " + trial);
  if (!works) testing::skip("hosts as network namespaces want root and iproute2");
  return !works;
}

bool Hosts::cannot_lose() {
  const std::string trial = "tune-test-" + std::to_string(getpid()) + "-0";
  const bool works =
      succeeds("ip netns add " + trial + " && ip netns exec " + trial + " " + losing(1));
  succeeds("ip netns del " + trial);
  if (!works) testing::skip("a network that loses packets wants nftables");
  return !works;
}

Hosts::Hosts(int count) : names_("tune-test-" + std::to_string(getpid()) + "-"), count_(count) {
  succeeds(kRemoveLeftOvers);
  const std::string bridge = names_ + "s";
  demand("ip netns add " + bridge);
  demand("ip -n " + bridge + " link add br0 type bridge");
  demand("ip -n " + bridge + " link set br0 up");
  for (int host = 0; host < count; ++host) {
    const std::string port = "port" + std::to_string(host);
    const std::string eth = "eth" + std::to_string(host);
    demand("ip netns add " + name(host));
    demand("ip -n " + name(host) + " link add " + eth + " type veth peer name " + port + " netns " +
           bridge);
    demand("ip -n " + name(host) + " addr add 10.93.0." + std::to_string(host + 1) +
           "/24 dev " + eth);
    demand("ip -n " + name(host) + " link set lo up");
    demand("ip -n " + name(host) + " link set " + eth + " up");
    demand("ip -n " + bridge + " link set " + port + " master br0 up");
  }
}

Hosts::~Hosts() {
  for (int host = 0; host < count_; ++host) succeeds("ip netns del " + name(host));
  succeeds("ip netns del " + names_ + "s");
}

std::string Hosts::name(int host) const {
  return names_ + std::to_string(host);
}

std::vector<std::string> Hosts::on(int host, const std::vector<std::string>& command,
                                   const std::vector<std::filesystem::path>& hidden) const {
  std::string script;  // in a mount namespace of its own
  for (const auto& folder : hidden) script += "mount -t tmpfs tmpfs '" + folder.string() + "' && ";
  std::vector<std::string> words = {"ip",   "netns", "exec",           name(host), "sh",
                                    "-c", script + "exec \"$@\"", "sh"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

void Hosts::cut(int host) const {
  demand("ip -n " + names_ + "s link set port" + std::to_string(host) + " nomaster");
}

void Hosts::mend(int host) const {
  demand("ip -n " + names_ + "s link set port" + std::to_string(host) + " master br0");
}

void Hosts::mute(int host) const {
  demand("ip netns exec " + names_ +
         "s nft \"table bridge mute { chain forward { type filter hook forward priority 0; iifname "
         "port" +
         std::to_string(host) + " drop; }; }\"");
}

void Hosts::unmute() const {
  demand("ip netns exec " + names_ + "s nft delete table bridge mute");
}

void Hosts::lose(int percent) const {
  demand("ip netns exec " + names_ + "s " + losing(percent));
}

bool Hosts::has_lost_some() const {
  return succeeds("ip netns exec " + names_ +
                  "s nft list table bridge loss | grep 'packets [1-9]'");
}

}  // namespace tune
