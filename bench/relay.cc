// A checkpoint of 1 GB from a machine that does not see the experiment's folder, until it is stored
// there: read, carried, checked and on disk.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/agent/relay_host.h"
#include "core/agent/relay_link.h"
#include "core/checkpoint_name.h"
#include "core/error.h"
#include "core/platform/bulk_socket.h"
#include "core/platform/files.h"
#include "core/platform/process.h"
#include "core/relay_contract.h"

namespace tune::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHelp =
    "Carries a checkpoint of 1 GB over loopback (tcp, CURVE) by the relay, from a folder to the\n"
    "experiment's. Bare limit: as many bytes over the same kind of socket, from memory, dropped\n"
    "when they come. Then the same beside a thread that multiplies matrices, as training does.\n"
    "Bare limit: the products that this thread makes in as much time alone.\n\n"
    "bench_relay [--between-namespaces] [--tiny] [--runs N] [--keep]\n\n"
    "  --between-namespaces  instead of over loopback: each side in a network namespace of its "
    "own,\n"
    "            a veth between them. As root, with iproute2";

constexpr const char* kExperiment = "ab12c";

// A network namespace, which goes with it.
class Namespace {
 public:
  Namespace() {
    in_thread([this] {
      demand(::unshare(CLONE_NEWNET), "making a network namespace");
      file_ = FileDescriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    });
  }
  // What this starts and opens is there.
  void run(const std::function<void()>& call) const {
    in_thread([&] {
      demand(::setns(file_.get(), CLONE_NEWNET), "entering a network namespace");
      call();
    });
  }
  std::string path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.get()); }

 private:
  static void in_thread(const std::function<void()>& call) {
    std::exception_ptr error;
    std::thread([&] {
      try {
        call();
      } catch (...) {
        error = std::current_exception();
      }
    }).join();
    if (error) std::rethrow_exception(error);
  }
  static void demand(int code, const char* what) {
    if (code == 0) return;
    throw Error(ErrorCode::kProcess, fmt::format("{}: {}", what, std::strerror(errno)));
  }
  FileDescriptor file_;
};

// The network between the driver's host and a machine.
class Network {
 public:
  explicit Network(bool between_namespaces) {
    if (!between_namespaces) return;
    driver_.emplace();
    machine_.emplace();
    const auto ip = [](std::vector<std::string> words) {
      words.insert(words.begin(), "ip");
      time_program(words);
    };
    on_driver([&] {
      address_ = "10.93.0.1";
      ip({"link", "add", "driver", "type", "veth", "peer", "name", "machine", "netns",
          machine_->path()});
      ip({"addr", "add", "10.93.0.1/24", "dev", "driver"});
      ip({"link", "set", "driver", "up"});
    });
    on_machine([&] {
      ip({"addr", "add", "10.93.0.2/24", "dev", "machine"});
      ip({"link", "set", "machine", "up"});
    });
  }
  bool is_between_namespaces() const { return driver_.has_value(); }
  const std::string& address() const { return address_; }  // of the driver's host
  void on_driver(const std::function<void()>& call) const { on(driver_, call); }
  void on_machine(const std::function<void()>& call) const { on(machine_, call); }

 private:
  static void on(const std::optional<Namespace>& host, const std::function<void()>& call) {
    host ? host->run(call) : call();
  }
  std::string address_ = "127.0.0.1";
  std::optional<Namespace> driver_, machine_;
};

// Multiplies matrices in a thread of its own.
class Training {
 public:
  Training() : thread_([this] { work(); }) {}
  ~Training() {
    ends_ = true;
    thread_.join();
  }
  Training(const Training&) = delete;
  std::uint64_t products() const { return products_; }

 private:
  static constexpr std::size_t kSize = 192;
  void work() {
    std::vector<float> a(kSize * kSize, 0.5f), b(kSize * kSize, 0.25f), c(kSize * kSize);
    for (; !ends_; ++products_) {
      for (std::size_t i = 0; i < kSize; ++i) {
        for (std::size_t k = 0; k < kSize; ++k) {
          const float factor = a[i * kSize + k];
          for (std::size_t j = 0; j < kSize; ++j) c[i * kSize + j] += factor * b[k * kSize + j];
        }
      }
      a[products_ % a.size()] = c[products_ % c.size()] > 1e6f ? 0.5f : 0.25f;  // it is needed
    }
  }

  std::atomic<bool> ends_ = false;
  std::atomic<std::uint64_t> products_ = 0;
  std::thread thread_;
};

class RelayBench {
 public:
  RelayBench(const Setting& setting, std::size_t bytes, const Network& network)
      : bytes_(bytes), room_(setting), network_(network) {
    experiment_ = room_.fresh("experiment");
    fs::create_directories(experiment_);
    const RelayedExperiment relayed{experiment_, kExperiment};
    network_.on_driver([&] { host_.emplace(at_driver(), 0, keys_, relayed); });
    const std::string address = fmt::format("{}:{}", network_.address(), host_->port());
    keys_.addresses = {address};
    const JoinToken token = token_of(keys_, kExperiment);
    network_.on_machine([&] { link_.emplace(token, address, kExperiment); });
  }

  double relay() {
    const CheckpointSaved saved = save();
    return carry(saved);
  }

  // Products a second.
  double training_beside() {
    const CheckpointSaved saved = save();
    const Training training;
    const double time = carry(saved);
    return static_cast<double>(training.products()) / time;
  }
  double training_alone(std::chrono::milliseconds time) {
    const Training training;
    const double passed = time_call([&] { std::this_thread::sleep_for(time); });
    return static_cast<double>(training.products()) / passed;
  }

  double bare() {
    std::optional<BulkSocket> to;
    network_.on_driver([&] { to.emplace(at_driver(), 0, keys_); });
    const std::size_t count = bytes_ / kRelayPieceBytes;
    std::thread sender([&] { network_.on_machine([&] { send_bare(to->port(), count); }); });
    return time_call([&] {
      std::string peer, piece;
      for (std::size_t got = 0; got < count;) {
        to->wait(-1, std::chrono::milliseconds(10));
        while (got < count && to->receive(peer, piece)) ++got;
      }
      to->send(peer, "end");
      sender.join();
    });
  }

 private:
  std::vector<std::string> at_driver() const { return {network_.address()}; }
  void send_bare(int port, std::size_t count) const {
    const std::string address = fmt::format("{}:{}", network_.address(), port);
    BulkSocket from(token_of(keys_, kExperiment), address, "bench");
    const std::string piece(kRelayPieceBytes, 'w');
    for (std::size_t sent = 0; sent < count;) {
      sent += from.send({}, piece) ? 1 : 0;  // it is full now and then
    }
    std::string peer, end;
    while (!from.receive(peer, end)) from.wait(-1, std::chrono::milliseconds(10));
  }
  CheckpointSaved save() {
    const CheckpointSaved saved{{0}, {1}, ++iteration_, {}, {}};
    const fs::path folder = link_->folder() / trial_id(kExperiment, saved.trial) /
                            checkpoint_name(saved.iteration, saved.attempt);
    fs::create_directories(folder);
    std::ofstream(folder / "weights", std::ios::binary) << std::string(bytes_, 'w');
    flush_folder(folder);
    return saved;
  }
  double carry(const CheckpointSaved& saved) {
    return time_call([&] {
      link_->order([&](RelayClient& client, RelayClient::Time) { client.store(saved); });
      while (!is_stored()) {
        pollfd watched{link_->descriptor(), POLLIN, 0};
        ::poll(&watched, 1, 1000);
      }
    });
  }
  bool is_stored() {
    for (const RelayOutcome& outcome : link_->take_outcomes()) {
      const auto* stored = std::get_if<RelayStored>(&outcome);
      if (stored == nullptr) continue;
      if (!stored->error.empty()) throw Error(ErrorCode::kTrialFailed, stored->error);
      return true;
    }
    return false;
  }

  std::size_t bytes_;
  Workplace room_;
  const Network& network_;
  fs::path experiment_;
  JoinKeys keys_ = make_keys();
  std::optional<RelayHost> host_;
  std::optional<RelayLink> link_;
  std::uint64_t iteration_ = 0;
};

void run(const Setting& setting, const Network& network) {
  const std::size_t bytes = setting.tiny ? 8u << 20 : std::size_t{1} << 30;
  RelayBench bench(setting, bytes, network);
  const std::chrono::milliseconds time(setting.tiny ? 50 : 3000);
  const auto times =
      medians(setting.runs, {[&] { return bench.relay(); }, [&] { return bench.bare(); },
                             [&] { return bench.training_beside(); },
                             [&] { return bench.training_alone(time); }});
  Table table(network.is_between_namespaces() ? "relay of a checkpoint between namespaces"
                                              : "relay of a checkpoint");
  const double mib = static_cast<double>(bytes) / (1 << 20);
  table.rate(fmt::format("{:.0f} MiB", mib), "MiB/s", mib / times[0], "a bare CURVE socket",
             mib / times[1]);
  table.rate("products of a thread beside it", "/s", times[2], "alone", times[3]);
}

}  // namespace
}  // namespace tune::bench

int main(int argc, char** argv) {
  using namespace tune::bench;
  constexpr int kSkippedCode = 77;
  char** const end = std::remove(argv + 1, argv + argc, std::string_view("--between-namespaces"));
  const auto setting = parse_setting(static_cast<int>(end - argv), argv, kHelp, 3);
  std::optional<Network> network;
  try {
    network.emplace(end != argv + argc);
  } catch (const tune::Error& error) {
    fmt::print(stderr, "skipped: {}\n", error.what());
    return kSkippedCode;
  }
  return guarded([&] { run(setting, *network); });
}
