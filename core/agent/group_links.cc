#include "core/agent/group_links.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/join_keys.h"
#include "core/platform/network_address.h"
#include "core/rank_environment.h"

namespace tune {
namespace {

constexpr std::size_t kMaxWordBytes = 1 << 20;  // of a frame, when there are several words
constexpr AgentTime kRank0Again = std::chrono::milliseconds(20);

// "[fd00::1]:4711" and "10.0.0.1:4711".
std::pair<std::string, int> host_and_port(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {address, 0};
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  int port = 0;
  std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  return {host, port};
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::string interface_with(const std::string& address) {
  for (const Interface& one : network_interfaces()) {
    if (one.address == address) return one.name;
  }
  return {};
}

// Words in as many frames as their size needs; at least one.
template <class Word>
std::vector<std::string> frames_of(std::vector<Word>& words) {
  std::vector<std::string> frames;
  std::vector<Word> some;
  std::size_t bytes = 0;
  for (Word& word : words) {
    const std::size_t size = encoded(word).size();
    if (!some.empty() && bytes + size > kMaxWordBytes) {
      frames.push_back(encoded(std::exchange(some, {})));
      bytes = 0;
    }
    bytes += size;
    some.push_back(std::move(word));
  }
  frames.push_back(encoded(some));
  words.clear();
  return frames;
}

}  // namespace

void GroupLinks::set_up(const JoinedSetup& setup, const std::string& driver_address) {
  key_ = setup.group_key;
  driver_addresses_ = setup.driver_addresses;
  driver_address_ = driver_address;
}

GroupNetwork& GroupLinks::network() {
  if (!network_) network_.emplace(key_);
  return *network_;
}

// Where the other nodes find this one: as the driver does, or by the driver's own address beside
// it.
std::string GroupLinks::own_address() const {
  if (!driver_address_.empty()) {
    const auto [host, port] = host_and_port(driver_address_);
    return own_address_towards(host, port);
  }
  const auto outside = std::ranges::find_if_not(driver_addresses_, is_loopback);
  if (outside != driver_addresses_.end()) return *outside;
  return driver_addresses_.empty() ? std::string() : driver_addresses_.front();
}

// ---- Actions ------------------------------------------------------------------------------------

void GroupLinks::act(AgentTime now, OpenGroup& open) {
  std::vector<std::string> addresses;
  try {
    const std::string own = own_address();
    if (own.empty()) throw Error(ErrorCode::kProcess, "no address of this node leads elsewhere");
    addresses_[open.attempt] = own;
    for (std::uint32_t node = 1; node <= open.others; ++node) {
      GroupNetwork::Listening listening = network().listen(own);
      ways_[{open.attempt, node}] = {.link = listening.link, .sent = now};
      keys_[listening.link] = {open.attempt, node};
      addresses.push_back(std::move(listening.address));
    }
    machine_.on_group_open(now, open.attempt, std::move(addresses), {});
  } catch (const Error& error) {
    machine_.on_group_open(now, open.attempt, {},
                           fmt::format("leading a group over several nodes: {}", error.what()));
  }
}

void GroupLinks::act(AgentTime now, JoinLead& join) {
  const Key key{join.attempt, 0};
  try {
    const auto [host, port] = host_and_port(join.address);
    // A lead on the loopback is on this very host.
    addresses_[join.attempt] = is_loopback(host) ? host : own_address_towards(host, port);
    const GroupNetwork::LinkId link = network().connect(join.address);
    ways_[key] = {.link = link, .sent = now};
    keys_[link] = key;
    members_[join.attempt] = {tunnel_.listen(link)};
  } catch (const Error& error) {
    give_up(now, key, error.what());
  }
}

void GroupLinks::act(AgentTime, TellNode& tell) {
  const auto way = ways_.find({tell.attempt, tell.node});
  if (way != ways_.end()) way->second.to_node.push_back(std::move(tell.word));
}

void GroupLinks::act(AgentTime, TellLead& tell) {
  const auto way = ways_.find({tell.attempt, 0});
  if (way != ways_.end()) way->second.to_lead.push_back(std::move(tell.word));
}

// When its last words have gone out.
void GroupLinks::act(AgentTime, CloseGroup& group) {
  for (auto& [key, way] : ways_) {
    if (key.first == group.attempt) way.closes = true;
  }
  members_.erase(group.attempt);
  addresses_.erase(group.attempt);
}

void GroupLinks::complete(StartWorker& start,
                          const std::map<std::string, std::string>& of_user) const {
  const std::uint64_t attempt = attempt_key(start.launch.trial, start.launch.attempt);
  const auto member = members_.find(attempt);
  if (member != members_.end()) {
    add_rendezvous(start.environment, GroupMeeting::kAddress, member->second.port);
  }
  const auto address = addresses_.find(attempt);
  if (address == addresses_.end()) return;
  const std::string interface = interface_with(address->second);
  const auto name = [&](const char* variable, const std::string& value) {
    const bool is_named = of_user.contains(variable) || std::getenv(variable) != nullptr;
    if (!interface.empty() && !is_named) start.environment[variable] = value;
  };
  name("GLOO_SOCKET_IFNAME", interface);
  name("NCCL_SOCKET_IFNAME", "=" + interface);  // exactly this one, not any that begins so
}

// ---- Turns --------------------------------------------------------------------------------------

int GroupLinks::descriptor() const {
  return network_ ? network_->descriptor() : -1;
}

int GroupLinks::tunnel_descriptor() const {
  return ways_.empty() ? -1 : tunnel_.descriptor();
}

std::optional<AgentTime> GroupLinks::next_look(AgentTime now) const {
  std::optional<AgentTime> soonest;
  for (const auto& [key, way] : ways_) {
    soonest = std::min(soonest.value_or(way.sent + kSignOfLife), way.sent + kSignOfLife);
  }
  if (soonest && tunnel_.waits_for_rank_0()) soonest = std::min(*soonest, now + kRank0Again);
  return soonest;
}

void GroupLinks::look(AgentTime now) {
  if (!network_) return;
  for (const GroupNetwork::Heard& heard : network_->receive()) hear(now, heard);
  for (auto& [link, bytes] : tunnel_.look()) {
    const auto key = keys_.find(link);
    if (key == keys_.end()) continue;
    Way& way = ways_.at(key->second);
    if (key->second.second == 0) {
      way.to_lead.push_back(std::move(bytes));
    } else {
      way.to_node.push_back(std::move(bytes));
    }
  }
}

void GroupLinks::hear(AgentTime now, const GroupNetwork::Heard& heard) {
  const auto found = keys_.find(heard.link);
  if (found == keys_.end()) return;
  const Key key = found->second;
  for (const std::string& frame : heard.frames) {
    try {
      take(now, key, frame);
    } catch (const Error& error) {  // damaged: nothing more of it can be trusted
      return give_up(now, key, fmt::format("it sent nonsense: {}", error.what()));
    }
  }
  if (heard.is_broken) give_up(now, key, "its connection broke");
}

void GroupLinks::take(AgentTime now, const Key& key, const std::string& frame) {
  Way& way = ways_.at(key);
  way.is_linked = true;
  const GroupNetwork::LinkId link = way.link;
  if (key.second == 0) {
    auto words = decoded<std::vector<LeadWord>>(frame);
    for (const LeadWord& word : words) {
      if (const auto* bytes = std::get_if<StreamBytes>(&word)) tunnel_.take(link, *bytes);
    }
    return machine_.on_lead(now, key.first, std::move(words));
  }
  auto words = decoded<std::vector<NodeWord>>(frame);
  if (const auto port = meeting_.port(key.first)) tunnel_.lead_to(link, *port);
  for (const NodeWord& word : words) {
    if (const auto* bytes = std::get_if<StreamBytes>(&word)) tunnel_.take(link, *bytes);
  }
  machine_.on_node(now, key.first, key.second, std::move(words));
}

// A lead that nothing has linked to has nobody to send to.
void GroupLinks::flush(AgentTime now) {
  std::vector<Key> lost;
  for (auto at = ways_.begin(); at != ways_.end();) {
    const auto one = at++;
    auto& [key, way] = *one;
    const bool leads = key.second != 0;
    const bool has_words = !way.to_node.empty() || !way.to_lead.empty();
    const bool is_due = has_words || now - way.sent >= kSignOfLife;
    if (is_due && (way.is_linked || !leads)) {
      way.sent = now;
      bool is_taken = true;
      for (const std::string& frame : leads ? frames_of(way.to_node) : frames_of(way.to_lead)) {
        is_taken = is_taken && network_->send(way.link, frame);
      }
      if (!is_taken && !way.closes) lost.push_back(key);
    } else if (is_due) {
      way.sent = now;
    }
    if (way.closes) close(one);
  }
  for (const Key& key : lost) give_up(now, key, "it takes nothing that is sent to it");
}

void GroupLinks::give_up(AgentTime now, const Key& key, const std::string& why) {
  if (const auto way = ways_.find(key); way != ways_.end()) close(way);
  machine_.on_link_broken(now, key.first, key.second, why);
}

void GroupLinks::close(std::map<Key, Way>::iterator way) {
  const GroupNetwork::LinkId link = way->second.link;
  tunnel_.close(link);
  network_->close(link);
  keys_.erase(link);
  ways_.erase(way);
}

}  // namespace tune
