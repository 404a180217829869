#include "tune/control/nodes.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

bool Nodes::all_are_ready() const {
  if (!away_.empty()) return false;
  return std::ranges::all_of(agents_, [](const auto& agent) { return agent.second.ready; });
}

bool Nodes::any_is_ready() const {
  return std::ranges::any_of(agents_, [](const auto& agent) { return agent.second.ready; });
}

const AgentHello& Nodes::hello(AgentNumber agent) const {
  const auto found = agents_.find(agent);
  TUNE_CHECK(found != agents_.end());
  return found->second.hello;
}

std::vector<AgentNumber> Nodes::all() const {
  std::vector<AgentNumber> numbers;
  for (const auto& [number, agent] : agents_) numbers.push_back(number);
  return numbers;
}

const AgentHello& Nodes::join(AgentNumber agent, const AgentHello& hello, ExperimentTime now) {
  TUNE_CHECK(!contains(agent));
  placer_.add_node(agent, resources_of(hello));
  learn_devices(agent, hello);
  order_.push_back(agent);
  return agents_.emplace(agent, Agent{hello, false, now}).first->second.hello;
}

void Nodes::set_ready(AgentNumber agent) {
  const auto found = agents_.find(agent);
  TUNE_CHECK(found != agents_.end());
  if (!std::exchange(found->second.ready, true)) open_if_free(agent);
}

void Nodes::let_share(AgentNumber agent) {
  agents_.at(agent).shares = true;
  placer_.let_share(agent);
}

std::optional<AgentNumber> Nodes::did_not_meet(AgentNumber one, AgentNumber other,
                                               std::uint64_t attempt) {
  const bool is_one_later = std::ranges::find(order_, one) > std::ranges::find(order_, other);
  const AgentNumber later = is_one_later ? one : other;
  const Miss miss{is_one_later ? other : one, attempt};
  Agent& agent = agents_.at(later);
  if (!agent.shares || std::ranges::find(agent.missed, miss) != agent.missed.end()) {
    return std::nullopt;
  }
  const bool again =
      std::ranges::find(agent.missed, miss.other, &Miss::other) != agent.missed.end();
  agent.missed.push_back(miss);
  if (!again) return std::nullopt;
  agent.shares = false;
  placer_.keep_apart(later);
  return later;
}

void Nodes::release_part(const PlacementPart& part, std::uint32_t nodes) {
  if (part.is_free) return;
  placer_.release_part(part, part_of(request_, static_cast<int>(nodes)));
}

void Nodes::open_if_free(AgentNumber agent) {
  const bool is_ready = agents_.at(agent).ready && !is_out(agent) && !is_away(agent);
  if (is_ready && holder_of_its_gpus(agent).empty()) placer_.open_node(agent);
}

std::string Nodes::holder_of_its_gpus(AgentNumber agent) const {
  for (const GpuInfo& gpu : hello(agent).gpus) {
    const auto owners = owners_.find(gpu.uuid);
    if (owners == owners_.end() || owners->second.front() == agent) continue;
    const AgentHello& first = hello(owners->second.front());
    return fmt::format("process {} of {}", first.pid, first.hostname);
  }
  return {};
}

void Nodes::set_out(AgentNumber agent, const std::string& cause) {
  TUNE_CHECK(contains(agent));
  if (out_.emplace(agent, cause).second) placer_.close_node(agent);
}

void Nodes::set_away(AgentNumber agent) {
  TUNE_CHECK(contains(agent));
  if (away_.insert(agent).second) placer_.close_node(agent);
}

void Nodes::set_back(AgentNumber agent) {
  if (away_.erase(agent) > 0) open_if_free(agent);
}

void Nodes::set_heard(AgentNumber agent, std::uint64_t number) {
  const auto found = agents_.find(agent);
  if (found != agents_.end()) found->second.heard = number;
}

void Nodes::hear_again(AgentNumber agent, const AgentHello& hello, ExperimentTime now) {
  Agent& known = agents_.at(agent);
  known.hello.lasts = hello.lasts;
  known.joined_at = now;
}

std::string Nodes::why_out() const {
  std::string all;
  for (const auto& [agent, cause] : out_) {
    all += fmt::format("{}node {}: {}", all.empty() ? "" : "; ", hello(agent).hostname, cause);
  }
  return all;
}

namespace {

std::string gpu_name(const AgentHello& hello, std::size_t gpu) {
  const GpuInfo& info = hello.gpus.at(gpu);
  const bool by_uuid = hello.gpus_by_uuid && !info.uuid.empty();
  return fmt::format("GPU {} of {}", by_uuid ? info.uuid : info.device, hello.hostname);
}

}  // namespace

void Nodes::learn_devices(AgentNumber agent, const AgentHello& hello) {
  devices_[hello.hostname].insert({agent, std::nullopt});
  for (std::uint32_t gpu = 0; gpu < hello.gpus.size(); ++gpu) {
    devices_[gpu_name(hello, gpu)].insert({agent, gpu});
    if (!hello.gpus[gpu].uuid.empty()) owners_[hello.gpus[gpu].uuid].push_back(agent);
  }
}

Devices Nodes::devices_of(const std::set<std::string>& places) const {
  Devices devices;
  for (const std::string& place : places) {
    const auto found = devices_.find(place);
    if (found != devices_.end()) devices.insert(found->second.begin(), found->second.end());
  }
  return devices;
}

std::vector<std::string> Nodes::places_of(const Placement& placement) const {
  const AgentHello& node = hello(placement.agent);
  if (placement.gpus.empty()) return {node.hostname};
  std::set<std::string> names;
  for (std::uint32_t gpu : placement.gpus) names.insert(gpu_name(node, gpu));
  return {names.begin(), names.end()};
}

std::string Nodes::place_in_words(const std::string& place) const {
  const auto found = devices_.find(place);
  if (found == devices_.end() || !found->second.begin()->gpu) return place;
  const Device& device = *found->second.begin();
  const AgentHello& node = hello(device.agent);
  const GpuInfo& gpu = node.gpus[*device.gpu];
  if (gpu.uuid.empty() || gpu.uuid == gpu.device || !node.gpus_by_uuid) return place;
  return fmt::format("GPU {} of {} ({})", gpu.device, node.hostname, gpu.uuid);
}

std::optional<Placement> Nodes::place(const std::set<std::string>& avoid) {
  return placer_.place(request_, devices_of(avoid));
}

std::optional<Placement> Nodes::place_on(AgentNumber agent, const std::set<std::string>& avoid) {
  return placer_.place_on(agent, request_, devices_of(avoid));
}

bool Nodes::could_hold(const std::set<std::string>& avoid) const {
  return placer_.could_hold(request_, devices_of(avoid));
}

void Nodes::leave(AgentNumber agent) {
  for (auto& [place, devices] : devices_) {
    std::erase_if(devices, [&](const Device& device) { return device.agent == agent; });
  }
  std::erase_if(devices_, [](const auto& place) { return place.second.empty(); });
  placer_.remove_node(agent);
  out_.erase(agent);
  away_.erase(agent);
  std::set<AgentNumber> heirs;
  for (const GpuInfo& gpu : hello(agent).gpus) {
    const auto owners = owners_.find(gpu.uuid);
    if (owners == owners_.end()) continue;
    std::erase(owners->second, agent);
    heirs.insert(owners->second.begin(), owners->second.end());
    if (owners->second.empty()) owners_.erase(owners);
  }
  agents_.erase(agent);
  std::erase(order_, agent);
  for (const AgentNumber heir : heirs) open_if_free(heir);
}

void Nodes::clear() {
  devices_.clear();
  owners_.clear();
  out_.clear();
  away_.clear();
  placer_ = Placer();
  agents_.clear();
  order_.clear();
}

void Nodes::save(PackWriter& out) const {
  out.map(order_.size());
  for (const AgentNumber agent : order_) encode(out, agent), encode(out, agents_.at(agent));
}

void Nodes::restore(PackReader& in) {
  clear();
  for (std::size_t left = in.map(); left > 0; --left) {
    AgentNumber number;
    decode(in, number);
    Agent& agent = agents_[number];
    decode(in, agent);
    placer_.add_node(number, resources_of(agent.hello));
    if (agent.shares) placer_.let_share(number);
    learn_devices(number, agent.hello);
    order_.push_back(number);
    open_if_free(number);
  }
}

void Nodes::save_out(PackWriter& out) const {
  out.map(out_.size());
  for (const auto& [number, cause] : out_) encode(out, number), encode(out, cause);
}

void Nodes::restore_out(PackReader& in) {
  for (std::size_t left = in.map(); left > 0; --left) {
    AgentNumber number;
    std::string cause;
    decode(in, number);
    decode(in, cause);
    if (!contains(number)) detail::bad_message("node that is out", number.value, 0);
    set_out(number, cause);
  }
}

void Nodes::save_away(PackWriter& out) const {
  encode(out, std::vector<AgentNumber>(away_.begin(), away_.end()));
}

void Nodes::restore_away(PackReader& in) {
  std::vector<AgentNumber> all;
  decode(in, all);
  for (const AgentNumber number : all) {
    if (!contains(number)) detail::bad_message("node that is away", number.value, 0);
    set_away(number);
  }
}

void Nodes::reserve_again(const std::deque<Trial>& trials) {
  for (const Trial& trial : trials) {
    const bool runs = trial.status == TrialStatus::kRunning;
    const bool fits = runs == trial.placement.has_value() &&
                      (!runs || placer_.reserve(*trial.placement, request_));
    if (fits) continue;
    throw Error(ErrorCode::kProtocol, fmt::format("the saved placement of trial {} does not fit "
                                                  "its node",
                                                  trial.number.value));
  }
}

}  // namespace tune
