#include "tune/drive/turn.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/refusal.h"
#include "fuzz/journal_experiment.h"
#include "memory_store.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

// Says what is done to it.
class SpeakingStore : public testing::MemoryStore {
 public:
  SpeakingStore(Words& said, std::shared_ptr<Contents> contents)
      : MemoryStore(std::move(contents)), said_(said) {}
  using MemoryStore::contents;
  void append(EntryId id, std::string_view payload) override {
    if (silent_calls > 1) fall_silent();
    said_.emplace_back("append");
    largest = std::max(largest, payload.size());
    MemoryStore::append(id, payload);
    if (silent_calls == 1) fall_silent();
  }
  void put_and_trim(std::string_view name, std::string_view value, EntryId through) override {
    if (silent_calls > 1) fall_silent();
    said_.emplace_back("snapshot " + to_string(through));
    CHECK(testing::has(std::string(value), "the state"));
    MemoryStore::put_and_trim(name, value, through);
    if (silent_calls == 1) fall_silent();
  }
  std::size_t largest = 0;
  int silent_calls = 0;  // the last of these is stored, and its answer is lost

 private:
  [[noreturn]] void fall_silent() {
    --silent_calls;
    said_.emplace_back("silence");
    throw StoreSilentError("the store is lost", "the store: no answer");
  }
  Words& said_;
};

class NoLogger : public Logger {
 public:
  void record(const Record&, const Telling&) override {}
  void flush() override {}
  std::future<std::string> save() override { return ready("the state"); }
  void restore(std::string_view) override {}
};

// A driver of an experiment in which a checkpoint is taken at every iteration and one is kept.
class TurnDriver : private TurnEdges {
 public:
  using Contents = testing::MemoryStore::Contents;

  explicit TurnDriver(std::shared_ptr<Contents> journal = std::make_shared<Contents>(),
                      ControllerSetup setup = fuzz::journal_experiment())
      : store(said, std::move(journal)), experiment_(store, std::move(setup), &logger_) {
    experiment_.replay();
    DriverStarted started;
    started.epoch = experiment_.next_epoch();
    started.num_samples = 4;
    turns.take_over(started);
  }

  void hear(const std::vector<AgentEvent>& events) {
    for (const AgentEvent& event : events) link_.send(encoded(event));
    std::vector<Peers::Told> all;
    for (const std::string& frame : link_.frames()) peers_.receive("a", frame, now(), all);
    for (Peers::Told& told : all) machine.on_told(std::move(told));
  }
  // The steps of the next turn.
  Words turn() {
    said.clear();
    turns.run();
    return said;
  }
  std::size_t steps_of_turn() {
    std::size_t steps = 0;
    while (turns.step()) {
      ++steps;
      if (turns.is_idle()) break;
    }
    return steps;
  }
  // Trials 0 and 1 run on it.
  void join() {
    AgentHello hello;
    hello.cpu_units = 2 * kUnit;
    ZygoteReady ready;
    ready.trainables = {{"T", true, false}};
    hear({hello, ready});
  }
  // With all that ran on it.
  void lose_agent() {
    machine.on_agent_started("a", now());
    machine.on_agent_ended("a", "killed");
  }
  static AgentEvent reported(std::uint64_t iteration) {
    Reported report;
    report.attempt = AttemptNumber{1};
    report.iteration = iteration;
    report.result = pack(Result{{"m", 0.5}});
    return report;
  }
  static AgentEvent saved(std::uint64_t iteration) {
    CheckpointSaved saved;
    saved.attempt = AttemptNumber{1};
    saved.iteration = iteration;
    return saved;
  }

  Words said;
  SpeakingStore store;
  bool is_flushed = false;
  bool there_is_room = true;
  bool owner_is_known = true;
  Searcher::Question question;  // the newest
  DriverMachine machine{{.ends_with_agent = false}};

 private:
  void check_owner() override {
    if (!owner_is_known) throw StoreSilentError("the lock is silent", "no answer");
  }
  DriverMachine::Time now() const override { return 1s; }
  WallTime wall() const override { return {}; }
  const Peers& peers() const override { return peers_; }
  void acknowledge(AgentNumber agent, Link::Position through) override {
    said.push_back("acknowledge " + std::to_string(through.sequence));
    peers_.acknowledge(agent, through);
  }
  void send(AgentNumber, const Command& command) override {
    said.emplace_back(std::holds_alternative<Launch>(command) ? "launch" : "command");
  }
  void flush_commands() override { said.emplace_back("flush"); }
  void ask(const Asking::Question& asked, Searcher::Question make) override {
    said.push_back("ask " + std::to_string(asked.number));
    question = std::move(make);
  }
  void write_results() override { said.emplace_back("results"); }
  void remove(const RemoveCheckpoint& checkpoint) override {
    const auto& [iteration, attempt] = checkpoint.checkpoint;
    said.push_back("remove " + checkpoint_name(iteration, attempt));
  }
  void remove_unrecorded(const Trial& trial, AttemptNumber lost) override {
    said.push_back("settle " + std::to_string(trial.number.value) + " up to attempt " +
                   std::to_string(lost.value));
  }
  bool has_room() const override { return there_is_room; }
  void flush_results(std::future<std::string> state) override {
    said.emplace_back("to the disk");
    state_ = std::move(state);
  }
  std::optional<std::string> flushed_results() override {
    if (!is_flushed) return std::nullopt;
    return state_.get();
  }

  NoLogger logger_;
  std::future<std::string> state_;
  JournaledController experiment_;
  Peers peers_{1};
  Link link_{1};

 public:
  Turns turns{experiment_, machine, *this};
};

TEST_CASE("a turn is appended, acknowledged, told to agents and then written to files") {
  TurnDriver driver;
  CHECK(driver.said == Words{"append"});  // the epoch
  CHECK(driver.turn() == Words{"flush", "results"});
  driver.join();
  CHECK(driver.turn() ==
        Words{"append", "acknowledge 2", "command", "launch", "launch", "flush", "results"});
  CHECK(driver.turn().empty());
  // The newest and the best are kept, of equals the older one.
  for (const std::uint64_t iteration : {1, 2}) {
    driver.hear({TurnDriver::reported(iteration), TurnDriver::saved(iteration)});
    CHECK(driver.turn().back() == "results");
  }
  driver.hear({TurnDriver::reported(3), TurnDriver::saved(3)});
  const Words said = driver.turn();
  CHECK(said.front() == "append");
  CHECK(said.back() == "remove checkpoint_000002");
}

ControllerSetup learning_experiment() {
  ControllerSetup setup = fuzz::journal_experiment();
  setup.searcher = gp().make();
  setup.searcher->configure({{{"x", uniform(0, 1)}}, 4, {}, setup.objective});
  return setup;
}

TEST_CASE("the searcher is asked after the commands, and its answer is a turn that launches") {
  TurnDriver driver(std::make_shared<TurnDriver::Contents>(), learning_experiment());
  driver.turn();
  driver.join();
  CHECK(driver.turn() == Words{"append", "acknowledge 2", "command", "flush", "ask 1", "results"});
  driver.hear({Warning{"meanwhile"}});
  CHECK(driver.turn() == Words{"append", "acknowledge 3", "flush", "results"});  // asked already
  driver.machine.on_proposed({1, {}, {driver.question()}, {}});
  CHECK(driver.turn() == Words{"append", "launch", "launch", "flush", "results"});
}

TEST_CASE("a question that a driver left open is put by the next one, answers are not made again") {
  const auto journal = std::make_shared<TurnDriver::Contents>();
  std::string answer;
  {
    TurnDriver driver(journal, learning_experiment());
    driver.turn();
    driver.join();
    driver.turn();
    driver.machine.on_proposed({1, {}, {driver.question()}, {}});
    driver.turn();
    AttemptEnded ended;
    ended.attempt = AttemptNumber{1};
    driver.hear({ended});
    CHECK(driver.turn() == Words{"append", "acknowledge 3", "flush", "ask 2", "results"});
  }
  TurnDriver next(journal, learning_experiment());
  CHECK(next.said == Words{"append"});
  CHECK_FALSE(next.question);
  next.turn();
  next.join();
  // Trial 1 goes on; trial 2 is asked for.
  CHECK(next.turn() ==
        Words{"append", "acknowledge 2", "command", "launch", "flush", "ask 3", "results"});
}

// The agent may have given a checkpoint its name and been lost before it told.
TEST_CASE("what an attempt left that was lost with its agent is removed, one trial a step") {
  TurnDriver driver;
  driver.turn();
  driver.join();
  driver.turn();
  driver.lose_agent();
  const Words lost = {"append", "flush", "results", "settle 0 up to attempt 1",
                      "settle 1 up to attempt 1"};
  CHECK(driver.turn() == lost);
  CHECK(driver.turn().empty());
  driver.machine.on_signal(2);
  CHECK(driver.turn() == Words{"append", "flush", "results"});  // once
}

// The one before it was killed with the removals to be done.
TEST_CASE("a driver that takes over settles what the one before it was to settle or remove") {
  TurnDriver first;
  first.turn();
  first.join();
  first.turn();
  for (const std::uint64_t iteration : {1, 2, 3}) {
    first.hear({TurnDriver::reported(iteration), TurnDriver::saved(iteration)});
    first.turn();
  }
  AttemptEnded ended;
  ended.attempt = AttemptNumber{1};
  first.hear({ended});  // trial 0, which has a removal behind it; trial 2 takes its place
  first.turn();
  first.lose_agent();
  first.turn();  // trials 1 and 2
  TurnDriver next(first.store.contents());
  CHECK(next.turn() == Words{"flush", "results", "settle 0 up to attempt 1",
                             "settle 1 up to attempt 1", "settle 2 up to attempt 1"});
}

TEST_CASE("what the driver has said is a turn of its own, also when all is over") {
  TurnDriver driver;
  driver.turn();
  driver.machine.on_notice("the store was silent for 7 s");
  CHECK(driver.turn() == Words{"append", "flush", "results"});
  CHECK(driver.turn().empty());
  driver.machine.on_signal(2);
  CHECK(driver.turn().front() == "append");  // nothing runs: that is the end
  driver.hear({Warning{"too late"}});
  CHECK(driver.turn().empty());
  driver.machine.on_notice("the metric was in no result");
  CHECK(driver.turn() == Words{"append", "flush", "results"});
  CHECK(driver.turn().empty());
}

TEST_CASE("each step of a turn is one by itself, so that any may be the last") {
  TurnDriver driver;
  driver.turn();
  driver.join();
  CHECK(driver.turns.is_idle());
  CHECK(driver.steps_of_turn() == 5);  // append, acknowledge, commands, results, snapshot
  CHECK(driver.steps_of_turn() == 0);
}

TEST_CASE("a snapshot is taken in one turn and stored in one after its files are on the disk") {
  TurnDriver driver;
  driver.turn();
  driver.turns.want_snapshot();
  driver.join();
  CHECK(driver.turn().back() == "to the disk");  // 1-1
  driver.hear({TurnDriver::reported(1)});
  CHECK(driver.turn().back() == "results");
  driver.is_flushed = true;
  driver.hear({TurnDriver::saved(1)});
  CHECK(driver.turn().back() == "snapshot 1-1");
  driver.hear({TurnDriver::reported(2)});
  CHECK(driver.turn().back() == "results");
}

TEST_CASE("while files have no room what agents tell waits, unacknowledged; a signal does not") {
  TurnDriver driver;
  driver.turn();
  driver.join();
  driver.turn();
  driver.there_is_room = false;
  driver.hear({TurnDriver::reported(1)});
  CHECK(driver.turn().empty());
  CHECK(driver.machine.idle_time(1s, {}, Peers{1}) == DriverMachine::kRoomEvery);  // no busy loop
  driver.machine.on_signal(2);
  const Words interrupted = driver.turn();
  CHECK(interrupted.front() == "append");
  CHECK(std::ranges::none_of(interrupted,
                             [](const auto& word) { return word.starts_with("acknowledge"); }));
  CHECK(driver.turn().empty());
  driver.there_is_room = true;
  const Words then = driver.turn();
  REQUIRE(then.size() > 1);
  CHECK(then[0] == "append");
  CHECK(then[1] == "acknowledge 3");
}

TEST_CASE("a turn to which the store does not answer is tried again, and is there once") {
  TurnDriver driver;
  driver.turn();
  driver.join();
  driver.store.silent_calls = 3;
  CHECK(driver.turn() == Words{"silence"});
  CHECK(driver.machine.store_is_silent());
  CHECK_FALSE(driver.turns.is_idle());
  driver.hear({TurnDriver::reported(1)});  // for the next turn
  CHECK(driver.turn() == Words{"silence"});
  CHECK(driver.turn() == Words{"append", "silence"});  // the answer is lost
  CHECK(driver.turn() ==
        Words{"append", "acknowledge 2", "command", "launch", "launch", "flush", "results"});
  CHECK_FALSE(driver.machine.store_is_silent());
  CHECK(driver.turn()[1] == "acknowledge 3");
  CHECK(driver.store.read({}, 10).size() == 3);
}

TEST_CASE("while it is not known whether the experiment is the driver's no step is taken") {
  TurnDriver driver;
  driver.turn();
  driver.join();
  const Words all = {"append", "acknowledge 2", "command", "launch", "launch", "flush", "results"};
  Words said;
  for (std::size_t steps = 0; said.size() < all.size(); ++steps) {
    REQUIRE(steps < all.size());
    driver.owner_is_known = false;
    CHECK(driver.turn().empty());
    CHECK(driver.machine.store_is_silent());
    driver.owner_is_known = true;
    driver.turns.step();
    CHECK_FALSE(driver.machine.store_is_silent());
    said.insert(said.end(), driver.said.begin(), driver.said.end());
  }
  CHECK(said == all);
}

TEST_CASE("a snapshot to which the store does not answer is tried again") {
  TurnDriver driver;
  driver.turn();
  driver.turns.want_snapshot();
  driver.join();
  driver.turn();
  driver.is_flushed = true;
  driver.hear({TurnDriver::reported(1)});
  while (driver.said.back() != "results") driver.turns.step();
  driver.store.silent_calls = 2;
  CHECK(driver.turn() == Words{"silence"});
  CHECK(driver.turn() == Words{"snapshot 1-1", "silence"});
  CHECK(driver.turn() == Words{"snapshot 1-1"});
  CHECK(driver.turns.is_idle());
}

// A journal entry of more than 64 MiB is refused by the store, which ended the run.
TEST_CASE("100 MB that agents told at once are committed as several turns, and none is lost") {
  TurnDriver driver;
  driver.turn();
  driver.join();
  driver.turn();
  for (int i = 0; i < 100; ++i) driver.hear({Warning{std::string(1'000'000, 'x')}});
  std::size_t turns = 0;
  std::string last;
  while (driver.turns.step()) {
    if (!driver.turns.is_idle()) continue;
    ++turns;
  }
  CHECK(turns == 13);  // of eight each: 100 / 8
  CHECK(driver.store.largest < DriverMachine::kMaxTurnBytes + (1u << 20));
  for (const std::string& said : driver.said) {
    if (said.starts_with("acknowledge")) last = said;
  }
  CHECK(last == "acknowledge 102");
}

}  // namespace
}  // namespace tune
