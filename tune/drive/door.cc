#include "tune/drive/door.h"

#include <poll.h>
#include <sys/resource.h>

#include <charconv>
#include <iterator>
#include <random>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "core/checkpoint_name.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/system_clock.h"
#include "core/strings.h"
#include "tune/drive/driver.h"
#include "tune/drive/plugin_copy.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/pool_value.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

constexpr const char* kNodesFolder = "nodes";
constexpr const char* kProofFile = "nodes/proof";
constexpr const char* kJoinFile = "nodes/join";

std::string random_text() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{:08x}", random());
  return text;
}

// 0: there is none.
int port_in(const std::vector<std::string>& addresses) {
  if (addresses.empty()) return 0;
  const std::string& first = addresses.front();
  int port = 0;
  std::from_chars(first.data() + first.rfind(':') + 1, first.data() + first.size(), port);
  return port;
}

// Each machine, and each stranger until it is refused, has a descriptor of this process.
void allow_many_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

std::vector<std::string> addresses_here(const RunOptions& options) {
  return reachable(listen_address(listens_at(options)), network_interfaces());
}

Door::Door(const ExperimentSpec& spec, const fs::path& experiment, const fs::path& shared)
    : experiment_(experiment),
      experiment_id_(experiment_id_of(spec)),
      mark_(experiment_mark_of(spec)),
      takes_machines_(takes_machines(spec.options)),
      own_agent_stays_(own_agent_stays(spec.options)),
      listen_(listen_address(listens_at(spec.options))),
      addresses_(addresses_here(spec.options)),
      join_file_(experiment / kJoinFile),
      keeps_checkpoints_(spec.options.checkpoint_storage.empty()) {
  std::optional<JoinKeys> kept = read_keys(experiment);
  is_kept_ = kept.has_value();
  const bool shares = !is_kept_ && !shared.empty();
  keys_ = is_kept_ ? std::move(*kept) : shares ? shared_keys(shared) : make_keys();
}

void Door::complete(JoinedSetup& setup, const ZygoteSource& zygote) {
  setup.worker_command = zygote.command;
  setup.worker_environment = zygote.environment;
  setup.working_directory = fs::current_path();
  setup.proof_file = kProofFile;
  setup.proof = random_text();
  setup.join_file = kJoinFile;
  setup.group_key = keys_.group_secret;
  setup.driver_addresses = addresses_;
  fs::create_directories(experiment_ / kNodesFolder);
  write_file_atomically(experiment_ / kProofFile, setup.proof);
  if (!takes_machines_) return;
  copy_plugin(experiment_, setup);
  // The port after the driver's, where a user names one, as for a firewall; else that of the last
  // time, which tunnels lead to.
  const RelayedExperiment relayed{experiment_, experiment_id_, mark_};
  const int wanted = listen_.port == 0 ? keys_.relay_port : listen_.port + 1;
  try {
    relay_.emplace(addresses_, wanted, keys_, relayed);
  } catch (const Error&) {
    if (wanted == 0) throw;
    relay_.emplace(addresses_, 0, keys_, relayed);
  }
  keys_.relay_port = relay_->port();  // written with the addresses
  setup.relay_port = static_cast<std::uint32_t>(relay_->port());
}

void Door::open(DriverEndpoint& endpoint, Requests& requests, const Nodes& nodes) {
  const int former = listen_.port == 0 ? port_in(keys_.addresses) : 0;
  int port = listen_.port;
  allow_many_connections();
  try {
    port = endpoint.listen(addresses_, former > 0 ? former : port, keys_, mark_);
  } catch (const Error&) {
    if (former == 0) throw;
    port = endpoint.listen(addresses_, 0, keys_, mark_);
  }
  keys_.addresses.clear();
  for (const std::string& address : addresses_) keys_.addresses.push_back(with_port(address, port));
  write_keys(experiment_, keys_);
  write_join_file();
  endpoint_ = &endpoint;
  requests.answer_by("drain", [this, &nodes](const Value& asked) { return drain(asked, nodes); });
  requests.answer_after("rotate", [this](const Value&) { return rotate(); });
}

void Door::expect(std::uint64_t epoch, const Controller& controller, DriverMachine& machine,
                  std::chrono::nanoseconds now) {
  const Nodes& nodes = controller.nodes();
  for (const AgentNumber agent : nodes.all()) {
    const std::string& identity = nodes.hello(agent).identity;
    endpoint_->expect(agent, identity, nodes.heard(agent), now);
    machine.on_agent_expected(identity, now);
    awaited_.insert(agent);
  }
  epoch_ = epoch;
}

std::vector<Peers::Told> Door::checked(std::vector<Peers::Told> told) {
  std::move(told.begin(), told.end(), std::back_inserter(kept_back_));
  if (looks_) looks_->take_outcomes();
  std::vector<Peers::Told> checked;
  while (!is_looking_ && !kept_back_.empty() && !begins_look(kept_back_.front())) {
    checked.push_back(std::move(kept_back_.front()));
    kept_back_.pop_front();
  }
  return checked;
}

// A folder may be copied while machines write into the one that it was copied from. After its
// greeting a machine says of none that it is stored before it has found this driver's proof.
bool Door::begins_look(const Peers::Told& told) {
  if (!awaited_.contains(told.agent)) return false;
  if (const auto* hello = std::get_if<Apart<AgentHello>>(&told.event)) {
    if ((*hello)->epoch == epoch_) awaited_.erase(told.agent);
  }
  const auto* saved = std::get_if<CheckpointSaved>(&told.event);
  if (saved == nullptr || !keeps_checkpoints_) return false;
  if (saved->storing != CheckpointSaved::Storing::kStored) return false;
  if (std::exchange(has_looked_, false)) return false;
  const AttemptNumber named = saved->name_has_attempt ? saved->attempt : AttemptNumber{};
  is_looking_ = true;
  if (!looks_) looks_ = std::make_unique<FileWorker>();
  looks_->give([this, path = experiment_ / trial_id(experiment_id_, saved->trial) /
                             checkpoint_name(saved->iteration, named)] {
    std::error_code unknown;
    return [this, is_there = fs::exists(path, unknown)] { take_look(is_there); };
  });
  return true;
}

void Door::take_look(bool is_there) {
  is_looking_ = false;
  has_looked_ = is_there;
  if (is_there) return;
  auto& saved = std::get<CheckpointSaved>(kept_back_.front().event);
  saved.storing = CheckpointSaved::Storing::kGivenUp;
}

int Door::port() const {
  return port_in(keys_.addresses);
}

void Door::set_join_addresses(std::vector<std::string> addresses) {
  join_addresses_ = std::move(addresses);
  write_join_file();
}

void Door::write_join_file() {
  ++tokens_written_;
  write_file_atomically(join_file_, join_text(keys_), Readers::kOwnerOnly);
}

std::string Door::join_text(const JoinKeys& keys) const {
  JoinToken token = token_of(keys, experiment_id_);
  if (!join_addresses_.empty()) token.addresses = join_addresses_;
  if (!join_addresses_.empty() && own_agent_stays_) {  // which is on this host
    token.addresses.insert(token.addresses.end(), keys.addresses.begin(), keys.addresses.end());
  }
  return to_text(token) + "\n";
}

std::string Door::invitation() const {
  return fmt::format("machines may join at {}; on each of them:\n  TUNE_JOIN={} tune agent",
                     join(keys_.addresses, ", "), to_text(token_of(keys_, experiment_id_)));
}

void Door::look(const Nodes& nodes, std::chrono::nanoseconds now) {
  if (written_.valid()) return take_written(now);
  if (keys_.former.empty() || !all_have_the_key(nodes) || now < rotation_ends_) return;
  JoinKeys fresh = keys_;
  fresh.former.clear();
  write_beside(std::move(fresh));
}

// A machine that is away, or comes with the old key meanwhile, is told as well: a connection that
// breaks must come back.
bool Door::all_have_the_key(const Nodes& nodes) {
  bool all_have = true;
  for (const AgentNumber agent : nodes.all()) {
    if (!nodes.hello(agent).joined) continue;
    if (told_.insert(agent).second) {
      endpoint_->send(agent, NewToken{to_text(token_of(keys_, experiment_id_))});
    }
    all_have = all_have && endpoint_->has_all(agent);
  }
  return all_have;
}

// A disk that stalls must not hold up the driver's loop.
void Door::write_beside(JoinKeys fresh) {
  fresh_ = std::move(fresh);
  written_ = std::async(std::launch::async, [experiment = experiment_, keys = fresh_,
                                             file = join_file_, text = join_text(fresh_)] {
    write_keys(experiment, keys);
    write_file_atomically(file, text, Readers::kOwnerOnly);
    return std::string("the join key is replaced");
  });
}

// Keys that could not be written change nothing.
void Door::take_written(std::chrono::nanoseconds now) try {
  if (written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  std::exchange(written_, {}).get();
  if (fresh_.join_public != keys_.join_public) {
    rotation_ends_ = now + kRotation;
    told_.clear();
    ++tokens_written_;
  }
  keys_ = std::move(fresh_);
  if (!keys_.former.empty()) return;
  endpoint_->admit(keys_.join_public);
  if (relay_) relay_->admit(keys_.join_public);
} catch (const Error&) {  // the user that asked for it is told
}

std::vector<std::string> Door::take_refused() {
  return relay_ ? relay_->take_refused() : std::vector<std::string>();
}

void Door::dismiss(AgentNumber agent) {
  const char* cause = "it was not heard for so long that its trials were given to others";
  endpoint_->send(agent, Shutdown{cause, true});
}

bool Door::await_keys(std::chrono::milliseconds limit) const {
  return !written_.valid() || written_.wait_for(limit) == std::future_status::ready;
}

void Door::close() const {
  if (written_.valid()) written_.wait();
  std::error_code ignored;
  fs::remove(join_file_, ignored);
}

void Door::part(const Nodes& nodes) const {
  std::set<AgentNumber> there;
  for (const AgentNumber agent : nodes.all()) {
    if (nodes.hello(agent).joined && !nodes.is_away(agent)) there.insert(agent);
  }
  const SystemClock clock;
  const auto end = clock.monotonic() + kParting;
  while (!there.empty() && clock.monotonic() < end) {
    pollfd watched{endpoint_->descriptor(), POLLIN, 0};
    ::poll(&watched, 1, 20);
    for (const Peers::Told& told : endpoint_->receive(clock.monotonic())) {
      endpoint_->acknowledge(told.agent, told.position);
      const auto* out = std::get_if<NodeOut>(&told.event);
      if (out != nullptr && out->gone) there.erase(told.agent);
    }
    endpoint_->flush(clock.monotonic());
  }
}

// ---- Requests -----------------------------------------------------------------------------------

std::string Door::drain(const Value& request, const Nodes& nodes) {
  const AgentNumber agent = find_node(nodes, request.get<std::string>("node"));
  endpoint_->send(agent, Drain{fmt::format("{} drains it", request.get<std::string>("user"))});
  return fmt::format("node {} leaves when its trials have saved", node_name(nodes, agent));
}

// A machine that reads the new key finds that it opens.
std::shared_future<std::string> Door::rotate() {
  if (written_.valid()) {
    throw Error(ErrorCode::kBadInput, "the join key is being replaced: try again in a moment");
  }
  JoinKeys fresh = keys_;
  replace_join_key(fresh);
  endpoint_->admit_also(fresh.join_public);
  if (relay_) relay_->admit_also(fresh.join_public);
  write_beside(std::move(fresh));
  return written_;
}

AgentNumber find_node(const Nodes& nodes, const std::string& name) {
  std::vector<AgentNumber> found;
  std::vector<std::string> names;
  for (const AgentNumber agent : nodes.all()) {
    const AgentHello& hello = nodes.hello(agent);
    names.push_back(node_name(nodes, agent));
    if (hello.hostname == name || fmt::format("{}:{}", hello.hostname, hello.pid) == name ||
        (!name.empty() && hello.allocation == name)) {
      found.push_back(agent);
    }
  }
  if (found.size() == 1) return found.front();
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} node {}; nodes: {}", found.empty() ? "there is no" : "several are",
                          name, names.empty() ? "none" : join(names, ", ")));
}

std::string node_name(const Nodes& nodes, AgentNumber agent) {
  const AgentHello& hello = nodes.hello(agent);
  for (const AgentNumber other : nodes.all()) {
    if (other == agent || nodes.hello(other).hostname != hello.hostname) continue;
    return fmt::format("{}:{}", hello.hostname, hello.pid);
  }
  return hello.hostname;
}

}  // namespace tune
