#include "core/peers.h"

#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

Peers::Met Peers::meet(const std::string& identity) {
  const AgentNumber next{static_cast<std::uint32_t>(peers_.size())};
  const auto [known, is_new] = numbers_.try_emplace(identity, next);
  if (is_new) peers_.push_back({.identity = identity, .link = Link(epoch_)});
  return {known->second, is_new};
}

void Peers::expect(AgentNumber agent, const std::string& identity, std::uint64_t heard, Time now) {
  while (peers_.size() <= agent.value) peers_.push_back({.identity = {}, .link = Link(epoch_)});
  Peer& peer = peers_[agent.value];
  TUNE_CHECK(peer.identity.empty());
  peer.identity = identity;
  peer.last_heard = now;
  peer.journaled = heard;
  numbers_[identity] = agent;
}

void Peers::receive(const std::string& identity, std::string_view frame, Time now,
                    std::vector<Told>& told) {
  const auto [number, is_new] = meet(identity);
  Peer& peer = peers_[number.value];
  const std::vector<std::string_view> fresh = unpacked(peer.link, frame);
  if (peer.link.peer_epoch() == 0) {  // it has never sent a frame that can be read
    if (!is_new) return;
    numbers_.erase(identity);
    peers_.pop_back();
    return;
  }
  if (peer.link.is_in_touch()) peer.last_heard = now;
  agenda_.touch(number.value);
  Link::Position position = peer.link.received();
  position.sequence -= fresh.size();
  for (const std::string_view bytes : fresh) {
    ++position.sequence;
    const std::uint64_t count = peer.link.received_before() + position.sequence;
    if (count <= peer.journaled) {  // its acknowledgement was lost with the driver
      peer.link.acknowledge(position);
      continue;
    }
    told.push_back({number, read(identity, bytes), bytes.size(), position, count});
  }
}

// A message that cannot be read is told as well, or it would never be acknowledged.
AgentEvent Peers::read(const std::string& identity, std::string_view message) try {
  AgentEvent event = decoded<AgentEvent>(message);
  if (auto* hello = std::get_if<Apart<AgentHello>>(&event)) (*hello)->identity = identity;
  return event;
} catch (const Error& error) {
  complaint_ = fmt::format("a message of {} bytes was dropped: {}", message.size(), error.what());
  return Warning{fmt::format("from {}: {}", identity, complaint_)};
}

std::vector<std::string_view> Peers::unpacked(Link& link, std::string_view frame) try {
  return link.receive(frame);
} catch (const Error& error) {
  complaint_ = fmt::format("a frame of {} bytes was dropped: {}", frame.size(), error.what());
  return {};
}

void Peers::acknowledge(AgentNumber agent, Link::Position through) {
  peers_.at(agent.value).link.acknowledge(through);
  agenda_.touch(agent.value);
}

void Peers::send(AgentNumber agent, const Command& command) {
  TUNE_CHECK(agent.value < peers_.size());
  peers_[agent.value].link.send(encoded(command));
  agenda_.touch(agent.value);
}

bool Peers::has_all(AgentNumber agent) const {
  TUNE_CHECK(agent.value < peers_.size());
  return peers_[agent.value].link.unacknowledged_bytes() == 0;
}

void Peers::flush(Time now, const Sender& send) {
  for (const std::size_t number : agenda_.take_due(now, peers_.size())) {
    Peer& peer = peers_[number];
    if (peer.identity.empty()) continue;
    peer.link.flush(now, [&](std::string frame) { return send(peer.identity, std::move(frame)); });
  }
}

std::optional<AgentNumber> Peers::number_of(const std::string& identity) const {
  const auto found = numbers_.find(identity);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

const std::string& Peers::identity_of(AgentNumber agent) const {
  TUNE_CHECK(agent.value < peers_.size());
  return peers_[agent.value].identity;
}

Peers::Time Peers::last_heard(AgentNumber agent) const {
  TUNE_CHECK(agent.value < peers_.size());
  return peers_[agent.value].last_heard;
}

}  // namespace tune
