// The driver's own work and nothing else: its DriverMachine, Turns, JournaledController, Peers and
// codec, with messages of nodes whose trials report and end without processes, network, disk or
// server. For figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/link.h"
#include "core/peers.h"
#include "simulator/counting_store.h"
#include "tune/drive/driver_machine.h"
#include "tune/drive/journaled_controller.h"
#include "tune/drive/turn.h"
#include "tune/search/searcher.h"

namespace tune::simulator {

struct BareOptions {
  std::uint32_t nodes = 125;
  std::uint32_t slots_per_node = 8;
  std::uint32_t trials = 1000;
  std::uint64_t iterations = 10;
  // Times are as if that many seconds, and as many iterations, were over before the first report.
  std::uint64_t begin = 0;
  // The time from taking a snapshot until its files are on disk and it is stored.
  Duration snapshot_takes{};
  SearcherSpec searcher = basic_variant();
  bool times_turns = false;  // keeps the time of each turn
};

// A node with the other end of a link.
class BareNode {
 public:
  explicit BareNode(const BareOptions& options) : options_(options) {}

  std::string hello();
  // The next message of every slot: its start, a result, its last checkpoint, its end; nothing: no
  // slot runs.
  std::vector<std::string> tell();
  void hear(std::string_view frame);
  std::size_t running() const { return slots_.size(); }

 private:
  struct Slot {
    Launch launch;
    std::uint64_t iteration = 0;
    bool has_started = false;
    bool has_saved = false;  // where it ends
  };
  bool tell_next(Slot& slot);

  const BareOptions& options_;
  Link link_{1};
  std::vector<Slot> slots_;
};

// Keeps as much data of a trial as a logger of files does.
class BareLogger : public Logger {
 public:
  void record(const Record& record, const Telling& telling) override;
  void flush() override {}
  std::future<std::string> save() override { return ready(encoded(lengths_)); }
  void restore(std::string_view) override {}
  std::uint64_t results() const { return results_; }

 private:
  struct Lengths {
    std::uint64_t json = 0, csv = 0, columns = 0, errors = 0;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.json, s.csv, s.columns, s.errors);
    }
  };
  std::vector<Lengths> lengths_;
  std::uint64_t results_ = 0;
};

class BareDriver : private TurnEdges {
 public:
  BareDriver(const BareOptions& options, CountingStore& store);
  BareDriver(const BareDriver&) = delete;

  // Runs one turn. The frames for nodes are in `outgoing` then.
  void turn(Duration now, AgentNumber node, const std::vector<std::string>& frames);
  struct Outgoing {
    const std::string* identity;
    std::string frame;
  };
  std::vector<Outgoing>& outgoing() { return outgoing_; }

  const Controller& controller() const { return experiment_.controller(); }
  const BareLogger& logger() const { return logger_; }
  std::size_t snapshot_bytes();  // of one taken now
  std::uint64_t events() const { return events_; }
  // CPU time, in order.
  const std::vector<Duration>& turn_times() const { return turn_times_; }
  Duration proposing() const { return proposing_; }  // CPU time of what a thread does beside turns

 private:
  bool run_turn();
  DriverMachine::Time now() const override { return now_; }
  WallTime wall() const override { return WallTime{std::chrono::hours(490'000)} + now_; }
  const Peers& peers() const override { return peers_; }
  void acknowledge(AgentNumber agent, Link::Position through) override {
    peers_.acknowledge(agent, through);
  }
  void send(AgentNumber agent, const Command& command) override { peers_.send(agent, command); }
  void flush_commands() override;
  void ask(const Asking::Question& question, Searcher::Question make) override;
  void write_results() override {}
  void remove(const RemoveCheckpoint&) override {}
  void remove_unrecorded(const Trial&, AttemptNumber) override {}
  void flush_results(std::future<std::string> state) override {
    state_ = std::move(state);
    flushed_at_ = now_ + options_.snapshot_takes;
  }
  std::optional<std::string> flushed_results() override {
    if (now_ < flushed_at_) return std::nullopt;
    return state_.get();
  }
  void turn_begins(const Turn& turn) override { events_ += turn.events.size(); }

  const BareOptions& options_;
  BareLogger logger_;
  std::future<std::string> state_;
  JournaledController experiment_;
  DriverMachine machine_{{.ends_with_agent = true}};
  Peers peers_{1};
  Turns turns_{experiment_, machine_, *this};
  std::vector<std::string> identities_;
  std::vector<Peers::Told> told_;
  std::vector<Outgoing> outgoing_;
  Duration now_{};
  Duration flushed_at_{};
  std::uint64_t events_ = 0;
  std::vector<Duration> turn_times_;
  Duration proposing_{};
};

// A sweep on such a cluster, in rounds: in each round, as once a second, every slot sends its next
// message.
class BareSweep {
 public:
  explicit BareSweep(const BareOptions& options);
  BareSweep(const BareSweep&) = delete;

  void run_round();
  // Of a sweep that is over, so that what is left in memory is the driver's and its store's.
  void forget_nodes() { std::vector<BareNode>().swap(nodes_); }
  BareDriver& driver() { return driver_; }
  CountingStore& store() { return store_; }
  Duration spent() const { return spent_; }  // CPU time of the driver

 private:
  void turn(AgentNumber node, const std::vector<std::string>& frames);

  BareOptions options_;
  CountingStore store_;
  std::vector<BareNode> nodes_;
  BareDriver driver_;
  Duration now_{};
  Duration spent_{};
};

}  // namespace tune::simulator
