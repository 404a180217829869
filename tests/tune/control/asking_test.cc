// A searcher whose proposals take time: when it is asked, for how many, and what becomes of
// answers.
#include "tune/control/asking.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/refusal.h"
#include "schedulers/asha.h"
#include "schedulers/hyperband.h"
#include "tune/control/scene.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using testing::Scene;

// An answer is the list of configurations to come; each says how many ends were known.
class Slow : public Searcher {
 public:
  explicit Slow(std::vector<std::string>* book = nullptr) : book_(book) {}
  void configure(const SearcherSetup& setup) override { state_.num_samples = setup.num_samples; }
  void set_num_samples(std::int64_t count) override { state_.num_samples = count; }
  std::optional<std::uint64_t> total() const override {
    if (state_.num_samples < 0) return std::nullopt;
    return state_.num_samples;
  }
  std::optional<Config> suggest(TrialNumber) override {
    if (state_.stock.empty()) return std::nullopt;
    const std::int64_t known = state_.stock.front();
    state_.stock.erase(state_.stock.begin());
    return Config{{"known", known}};
  }
  void end_trial(TrialNumber, TrialEnd, const Reported*) override { ++state_.ends; }
  void pause_trial(TrialNumber trial) override { note("pause", trial); }
  void resume_trial(TrialNumber trial) override { note("resume", trial); }
  std::optional<std::size_t> ready() const override { return state_.stock.size(); }
  Question question(std::size_t count) const override {
    return [answer = encoded(std::vector<std::int64_t>(count, state_.ends))] { return answer; };
  }
  void answer(std::string_view answer) override {
    const auto more = decoded<std::vector<std::int64_t>>(answer);
    state_.stock.insert(state_.stock.end(), more.begin(), more.end());
  }
  std::string save() const override { return encoded(state_); }
  void restore(std::string_view state) override { state_ = decoded<State>(state); }

 private:
  struct State {
    std::int64_t num_samples = 0;
    std::int64_t ends = 0;
    std::vector<std::int64_t> stock;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.num_samples, s.ends, s.stock);
    }
  };
  void note(const char* what, TrialNumber trial) {
    if (book_ != nullptr) book_->push_back(std::string(what) + " " + std::to_string(trial.value));
  }
  std::vector<std::string>* book_;
  State state_;
};

// Plays a driver that makes answers when it is told to.
class Asked : public Scene {
 public:
  explicit Asked(Options options) : Scene(with_slow(std::move(options))) {}
  static Options with_slow(Options options) {
    if (options.searcher.name() == "basic_variant") options.searcher = searcher<Slow>();
    return options;
  }

  // The number asked for; 0: there is no question.
  std::uint32_t wanted() const {
    const auto open = controller_.question();
    return open ? open->count : 0;
  }
  Proposed made() const {
    const auto open = controller_.question();
    REQUIRE(open.has_value());
    Proposed proposed{open->number, 0ms, {}, {}};
    proposed.answer.bytes = controller_.searcher().question(open->count)();
    return proposed;
  }
  void answer(Duration took = 0ms) {
    Proposed proposed = made();
    proposed.took = took;
    wait(took);
    give(proposed);
  }
  std::size_t launches() { return take<Launch>().size(); }
  std::int64_t known(std::uint32_t trial) const {
    return Config(unpack(controller_.trials()[trial].config)).get<std::int64_t>("known");
  }
};

TEST_CASE("places that are free are asked for together, and taken when the answer is there") {
  Asked scene({.num_samples = 9, .cpus = 3});
  CHECK(scene.wanted() == 0);  // no node
  scene.join();
  CHECK(scene.wanted() == 3);
  CHECK(scene.launches() == 0);
  CHECK(scene.controller_.trials().empty());
  scene.answer();
  CHECK(scene.launches() == 3);
  CHECK(scene.wanted() == 0);
}

TEST_CASE(
    "a proposal knows all that was told before its question, and nothing is asked for early") {
  Asked scene({.num_samples = 9, .cpus = 1});
  scene.join();
  scene.answer();
  for (std::uint32_t trial = 0; trial < 4; ++trial) {
    scene.wait(1min);
    CHECK(scene.wanted() == 0);
    scene.end(trial, Outcome::kCompleted);
    CHECK(scene.wanted() == 1);
    scene.answer(20ms);
    CHECK(scene.known(trial + 1) == trial + 1);
  }
}

TEST_CASE("while a question is open there is no other, and what came meanwhile is asked for next") {
  Asked scene({.num_samples = 9, .cpus = 2});
  scene.join();
  scene.answer();
  scene.end(0, Outcome::kCompleted);
  const Proposed first = scene.made();
  scene.end(1, Outcome::kCompleted);
  CHECK(scene.wanted() == 1);
  scene.launches();
  scene.give(first);
  CHECK(scene.launches() == 1);
  CHECK(scene.known(2) == 1);  // of the moment of its question
  CHECK(scene.wanted() == 1);
  scene.answer();
  CHECK(scene.known(3) == 2);
}

TEST_CASE("no more is asked for than there are trials, and places that the user allows") {
  Asked few({.num_samples = 2, .cpus = 5});
  few.join();
  CHECK(few.wanted() == 2);
  few.answer();
  few.end(0, Outcome::kCompleted);
  CHECK(few.wanted() == 0);
  few.end(1, Outcome::kCompleted);
  CHECK(few.controller_.phase() == Phase::kFinished);

  Asked narrow({.num_samples = 5, .cpus = 5});
  DriverStarted started;
  started.num_samples = 5;
  started.max_concurrent_trials = 2;
  narrow.give(started);
  narrow.join();
  CHECK(narrow.wanted() == 2);

  Asked wide({.num_samples = 500, .cpus = 200});
  wide.join();
  CHECK(wide.wanted() == kFewProposals);
  wide.answer();
  CHECK(wide.launches() == kFewProposals);
  CHECK(wide.wanted() == kFewProposals);
}

TEST_CASE("many are asked for at once only where many are used up while an answer is made") {
  const auto asked = [](std::uint64_t count, std::uint32_t stock) {
    Asking asking;
    asking.ask(count, stock);
    return asking.open()->count;
  };
  CHECK(asked(9, 0) == 9);
  CHECK(asked(64, 0) == kFewProposals);
  CHECK(asked(64, kFewProposals) == kFewProposals);
  CHECK(asked(40, kFewProposals + 1) == 40);
  CHECK(asked(500, 64) == Asking::kMostAtOnce);
}

TEST_CASE("a driver of an older build is asked for as many as it was then") {
  Asked scene({.num_samples = 500, .cpus = 200});
  DriverStarted older;
  older.num_samples = 500;
  older.asks_for_few = false;
  scene.give(older);
  scene.join();
  CHECK(scene.wanted() == Asking::kMostAtOnce);
}

TEST_CASE("an answer to a question that is not open changes nothing") {
  Asked scene({.num_samples = 9, .cpus = 1});
  scene.join();
  const Proposed answer = scene.made();
  Proposed other = answer;
  other.question += 1;
  scene.give(other);
  CHECK(scene.controller_.trials().empty());
  scene.give(answer);
  CHECK(scene.controller_.trials().size() == 1);
  scene.end(0, Outcome::kCompleted);
  scene.give(answer);  // again
  CHECK(scene.controller_.trials().size() == 1);
  CHECK(scene.wanted() == 1);
}

TEST_CASE("a question whose driver ended is asked again, with what is known then") {
  Asked scene({.num_samples = 9, .cpus = 1});
  scene.join();
  scene.answer();
  scene.end(0, Outcome::kCompleted);
  const Proposed unheard = scene.made();
  scene.start();
  CHECK(scene.wanted() == 0);  // no node is there
  scene.give(unheard);
  CHECK(scene.controller_.trials().size() == 1);
  scene.join();
  CHECK(scene.wanted() == 1);
  CHECK(scene.controller_.question()->number > unheard.question);
  scene.answer();
  CHECK(scene.controller_.trials().size() == 2);
}

TEST_CASE("an answer that comes when all is to end is kept for those who go on") {
  Asked scene({.num_samples = 9, .cpus = 2});
  scene.join();
  scene.answer();
  scene.end(0, Outcome::kCompleted);
  const Proposed answer = scene.made();
  scene.give(InterruptRequested{2});
  CHECK(scene.wanted() == 0);
  scene.launches();
  scene.give(answer);
  CHECK(scene.launches() == 0);
  scene.saved(1, 1);
  scene.end(1, Outcome::kPaused);
  CHECK(scene.controller_.phase() == Phase::kInterrupted);
  scene.start();
  scene.join();
  CHECK(scene.launches() == 2);  // the paused one, and the answer
  CHECK(scene.wanted() == 0);
}

TEST_CASE("a searcher that has no more ends the sweep, and one that fails does with its reason") {
  Asked endless({.num_samples = -1, .cpus = 2});
  endless.join();
  endless.answer();
  endless.end(0, Outcome::kCompleted);
  Proposed nothing = endless.made();
  nothing.answer.bytes = encoded(std::vector<std::int64_t>{});
  endless.give(nothing);
  CHECK(endless.controller_.phase() == Phase::kRunning);
  CHECK(endless.wanted() == 0);
  endless.end(1, Outcome::kCompleted);
  CHECK(endless.controller_.phase() == Phase::kFinished);

  for (const bool says_so : {false, true}) {
    CAPTURE(says_so);
    Asked failing({.num_samples = 5, .cpus = 2});
    failing.join();
    Proposed broken = failing.made();
    broken.answer.bytes = "\xc1";
    if (says_so) broken.error = "no luck";
    failing.give(broken);
    CHECK(failing.controller_.phase() == Phase::kFailed);
    CHECK_HAS(failing.controller_.failure(), "asking the searcher for configurations: ");
    if (says_so) CHECK_HAS(failing.controller_.failure(), "no luck");
    CHECK(failing.launches() == 0);
  }
}

TEST_CASE("a paused trial that may go on comes before a new one, which then is not asked for") {
  std::vector<std::string> book;
  Asked scene({.num_samples = 9,
               .cpus = 1,
               .scheduler = asha({.max_t = 9, .reduction_factor = 3, .type = AshaType::kPromote}),
               .searcher = searcher<Slow>(&book)});
  scene.join();
  for (std::uint32_t trial = 0; trial < 3; ++trial) {
    scene.answer();
    scene.give_report(trial, 1, trial == 1 ? 0.9 : 0.5, true);
    scene.saved(trial, 1);
    scene.launches();
    scene.end(trial, Outcome::kPaused);
    CHECK(scene.wanted() == (trial < 2 ? 1 : 0));
  }
  // The best of three goes on, at the place that the third has left.
  CHECK(scene.status(1) == TrialStatus::kRunning);
  CHECK(scene.controller_.trials().size() == 3);
  book.erase(std::unique(book.begin(), book.end()), book.end());  // a restored one tells nothing
  CHECK(book == std::vector<std::string>{"pause 0", "pause 1", "pause 2", "resume 1"});
}

// Three trials, though it does not know so before.
class Three : public Searcher {
 public:
  void configure(const SearcherSetup&) override {}
  std::optional<std::uint64_t> total() const override { return std::nullopt; }
  std::optional<Config> suggest(TrialNumber trial) override {
    if (trial.value >= 3) return std::nullopt;
    return Config{{"n", trial.value}};
  }
  std::string save() const override { return encoded(std::string("three")); }
  void restore(std::string_view) override {}
};

TEST_CASE("a searcher that does not know its end is asked until it says so") {
  Scene scene({.cpus = 2, .searcher = searcher<Three>()});
  scene.join();
  CHECK(scene.take<Launch>().size() == 2);
  scene.end(0, Outcome::kCompleted);
  CHECK(scene.take<Launch>().size() == 1);
  scene.end(1, Outcome::kCompleted);
  CHECK(scene.controller_.phase() == Phase::kRunning);
  scene.end(2, Outcome::kCompleted);
  CHECK(scene.controller_.phase() == Phase::kFinished);
  CHECK(scene.controller_.trials().size() == 3);
  scene.start();  // there might be more now
  CHECK(scene.controller_.phase() == Phase::kRunning);
  scene.join();
  CHECK(scene.controller_.phase() == Phase::kFinished);
}

TEST_CASE("when a new trial is chosen that there is not, a paused one may take its place") {
  // Under HyperBand a bracket that is not full goes on when no more come.
  Scene scene({.cpus = 1,
               .scheduler = hyperband({.max_t = 9, .reduction_factor = 3}),
               .searcher = searcher<Three>()});
  scene.join();
  for (std::uint32_t trial = 0; trial < 3; ++trial) {
    scene.give_report(trial, 1, 0.1 * trial, true);
    scene.saved(trial, 1);
    scene.take<Launch>();
    scene.end(trial, Outcome::kPaused);
  }
  CHECK(scene.controller_.trials().size() == 3);
  CHECK(scene.status(2) == TrialStatus::kRunning);
  CHECK(scene.take<Launch>().size() == 1);
}

// ---- The stock ----------------------------------------------------------------------------------

// Trials of this length on `places` places, answers that take `takes`, until both are known.
std::uint32_t stock_after(Duration lasts, Duration takes, std::uint64_t places) {
  Asking asking;
  ExperimentTime now{};
  for (std::uint32_t trial = 0; trial < 50; ++trial) {
    asking.attempt_began(TrialNumber{trial}, now);
    now += lasts;
    asking.attempt_ended(TrialNumber{trial}, now);
    asking.ask(1, 0);
    REQUIRE(asking.answered(asking.open()->number, takes));
  }
  return asking.stock(places);
}

TEST_CASE(
    "the stock is what is used up twice while an answer is made, and nothing beside long trials") {
  CHECK(stock_after(1min, 20ms, 64) == 0);
  CHECK(stock_after(2001ms, 20ms, 64) == 0);  // below a hundredth part
  CHECK(stock_after(1s, 50ms, 64) == 7);      // 2 * 64 * 0.05 = 6.4
  CHECK(stock_after(1s, 50ms, 4) == 1);       // 0.4
  CHECK(stock_after(100ms, 50ms, 4) == 4);    // as many as run, at the most
  CHECK(stock_after(100ms, 50ms, 1000) == Asking::kMostAtOnce);
  CHECK(Asking().stock(64) == 0);  // nothing is known
  CHECK(stock_after(0ms, 50ms, 64) == 0);
}

TEST_CASE("lengths of trials and answers follow what they are now") {
  Asking asking;
  ExperimentTime now{};
  const auto live = [&](Duration lasts) {
    asking.attempt_began(TrialNumber{0}, now);
    asking.attempt_ended(TrialNumber{0}, now += lasts);
  };
  asking.ask(1, 0);
  asking.answered(1, 50ms);
  for (int i = 0; i < 5; ++i) live(1min);
  CHECK(asking.stock(8) == 0);
  for (int i = 0; i < 200; ++i) live(1s);
  CHECK(asking.stock(8) > 0);
  // A lost attempt says nothing of how long they are.
  asking.attempt_began(TrialNumber{7}, now);
  asking.attempt_lost(TrialNumber{7});
  asking.attempt_ended(TrialNumber{7}, now + 24h);
  CHECK(asking.stock(8) > 0);
}

TEST_CASE("where trials are short a stock is kept, from which places are filled at once") {
  Asked scene({.num_samples = 1000, .cpus = 4});
  scene.join();
  scene.answer(50ms);
  std::uint32_t ended = 0;
  for (int round = 0; round < 40; ++round) {
    scene.wait(200ms);
    scene.launches();
    scene.end(ended++, Outcome::kCompleted);
    if (scene.wanted() > 0) scene.answer(50ms);
  }
  scene.launches();
  scene.wait(200ms);
  scene.end(ended++, Outcome::kCompleted);
  CHECK(scene.launches() == 1);  // before any answer
}

TEST_CASE("what is asked and kept in mind is part of the state") {
  Asking asking;
  asking.attempt_began(TrialNumber{3}, 1s);
  asking.attempt_began(TrialNumber{4}, 2s);
  asking.attempt_ended(TrialNumber{3}, 3s);
  asking.ask(5, 0);
  PackWriter saved;
  asking.save(saved);
  Asking after;
  PackReader in(saved.bytes());
  after.restore(in);
  in.expect_end();
  PackWriter again;
  after.save(again);
  CHECK(again.bytes() == saved.bytes());
  CHECK(after.open()->count == 5);
  CHECK_FALSE(after.answered(7, 1s));
  CHECK(after.answered(asking.open()->number, 1s));
}

}  // namespace
}  // namespace tune
