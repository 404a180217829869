// Replays: journals that are confirmed, and differences that are found.
#include "tune/drive/replay.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "core/wire.h"
#include "schedulers/hyperband.h"
#include "schedulers/median_stopping.h"
#include "tune/drive/played_experiment.h"
#include "tune/search/pb2/pb2.h"
#include "tune/search/pbt/pbt.h"
#include "tune/search/proposal.h"
#include "tune/spec/experiment_identity.h"

namespace tune {
namespace {

const SearchSpace kSpace = {{"x", uniform(0, 1)}, {"act", choice({"relu", "tanh"})}};

RunOptions learning() {
  RunOptions options;
  options.config = kSpace;
  options.num_samples = 14;
  options.searcher = gp({.start_up = 3, .random_share = 0});
  options.scheduler = asha({.max_t = 9, .grace_period = 1, .reduction_factor = 3});
  return options;
}

ReplayReport replayed(PlayedExperiment& played, bool is_over = true) {
  return replay(played.store(), played.spec(), played.directory(), is_over);
}

// The content of an answer of a searcher around a proposer.
struct Answer {
  std::vector<Proposal> proposals;
  Packed state;
  static void fields(auto& s, auto& f) { f(s.proposals, s.state); }
};

// The same as an older build wrote it, without the last field of a proposal.
struct OldProposal {
  UnitPoint point;
  ProposalOrigin origin = ProposalOrigin::kStartUp;
  std::string note;
  std::optional<Expectation> expected;
  std::vector<TrialNumber> neighbours;
  std::uint32_t results_known = 0;
  std::uint32_t pending_known = 0;
  static void fields(auto& s, auto& f) {
    f(s.point, s.origin, s.note, s.expected, s.neighbours, s.results_known, s.pending_known);
  }
};
struct OldAnswer {
  std::vector<OldProposal> proposals;
  Packed state;
  static void fields(auto& s, auto& f) { f(s.proposals, s.state); }
};

std::string told(const ReplayReport& report) {
  if (!report.difference) return "the same";
  return report.difference->what + ": " + report.difference->journaled + " / " +
         report.difference->replayed;
}

// Changes the first event of the journal for which `change` returns true.
void change_event(PlayedExperiment& played, const std::function<bool(Event&)>& change) {
  for (auto& [id, payload] : played.journal().entries) {
    Turn turn = turn_of(payload);
    for (Event& event : turn.events) {
      if (!change(event)) continue;
      payload = encoded(turn);
      return;
    }
  }
  FAIL("no event was changed");
}

void change_file(const PlayedExperiment& played, const std::string& file, const std::string& from,
                 const std::string& to) {
  std::string text = played.read(file.c_str());
  const std::size_t at = text.find(from);
  REQUIRE(at != text.npos);
  write_file_atomically(played.directory() / file, text.replace(at, from.size(), to));
}

TEST_CASE("a sweep of a searcher that learns leads to the same decisions again") {
  PlayedExperiment played(learning());
  played.play();
  REQUIRE(played.controller().phase() == Phase::kFinished);
  const std::string events = played.read("events.jsonl");
  const ReplayReport report = replayed(played);
  CAPTURE(told(report));
  CHECK_FALSE(report.difference.has_value());
  CHECK_FALSE(report.from.has_value());
  CHECK(report.launches == 14);
  CHECK(report.proposals == 14);
  CHECK(report.other_numbers == 0);
  CHECK(report.unasked == 0);
  CHECK(report.configurations == 14);
  CHECK(report.verdicts > 14);
  CHECK(report.waits > 20);
  CHECK(report.lines == static_cast<std::uint64_t>(std::ranges::count(events, '\n')));
  CHECK(report.remark.empty());
  CHECK(played.read("events.jsonl") == events);
}

TEST_CASE("so do random search, grids, trials that pause and drivers that take over") {
  RunOptions options = learning();
  options.searcher = {};
  options.config.set("layers", grid_search({1, 2}));
  options.num_samples = 5;
  options.scheduler =
      asha({.max_t = 9, .grace_period = 1, .reduction_factor = 3, .type = AshaType::kPromote});
  PlayedExperiment played(options);
  played.play(30);
  REQUIRE_FALSE(played.controller().is_over());
  CHECK_FALSE(replayed(played, false).difference.has_value());
  played.restart();
  played.play();
  REQUIRE(played.controller().phase() == Phase::kFinished);
  const ReplayReport report = replayed(played);
  CAPTURE(told(report));
  CHECK_FALSE(report.difference.has_value());
  CHECK(report.proposals == 0);
  CHECK(report.configurations == 10);
  CHECK(report.launches > 10);
}

TEST_CASE("so do the other searchers and schedulers, also where a driver takes over") {
  const AshaOptions halving = {.max_t = 9, .grace_period = 1, .reduction_factor = 3};
  PbtOptions weak{.perturbation_interval = 2};
  weak.hyperparam_mutations = {{"x", uniform(0, 1)}};
  weak.quantile_fraction = 0.5;
  Pb2Options modelled{.perturbation_interval = 2};
  modelled.hyperparam_bounds = {{"x", uniform(0, 1)}};
  modelled.quantile_fraction = 0.5;
  AshaOptions brackets = halving;
  brackets.brackets = 2;
  const std::vector<Goal> one, two = {{"loss", Mode::kMin}, {"size", Mode::kMin}};
  struct Case {
    const char* what;
    SearcherSpec searcher;
    SchedulerSpec scheduler;
    std::vector<Goal> objectives;
    const char* line;  // of events.jsonl, that there must be
  };
  const std::vector<Case> cases = {
      {"auto", automatic(), asha(halving), one, "\"sd\":"},
      {"tpe", tpe({.start_up = 3}), asha(halving), one, "\"origin\":\"model\""},
      {"cma_es", cma_es({.population = 4}), fifo(), one, "\"origin\":\"model\""},
      {"halton", halton(), asha(brackets), one, "\"bracket\":1"},
      {"nsga2", nsga2({.population = 4}), fifo(), two, "\"origin\":\"model\""},
      {"several", gp({.start_up = 3}), asha(halving), two, "\"origin\":\"model\""},
      {"hyperband", random_search(), hyperband({.max_t = 9}), one, "\"verdict\":\"pause\""},
      {"median", random_search(), median_stopping(), one, "\"verdict\":\"stop\""},
      {"pbt", random_search(), pbt(weak), one, "\"event\":\"replaced\""},
      {"pb2", random_search(), pb2(modelled), one, "\"event\":\"replaced\""},
  };
  for (const Case& each : cases) {
    CAPTURE(each.what);
    RunOptions options = learning();
    options.searcher = each.searcher;
    options.scheduler = each.scheduler;
    options.objectives = each.objectives;
    PlayedExperiment played(options);
    played.play(20);
    REQUIRE_FALSE(played.controller().is_over());
    played.restart();
    played.play();
    REQUIRE(played.controller().phase() == Phase::kFinished);
    CHECK_HAS(played.read("events.jsonl"), each.line);
    const ReplayReport report = replayed(played);
    CAPTURE(told(report));
    CHECK_FALSE(report.difference.has_value());
    CHECK(report.configurations == 14);
    CHECK(report.launches >= 14);
  }
}

TEST_CASE("where a snapshot cut the head off, replay begins there and says so") {
  PlayedExperiment played(learning());
  played.play(40);
  played.snapshot();
  const EntryId at = *played.store().last();
  CHECK_FALSE(replayed(played, false).difference.has_value());
  played.play();
  const ReplayReport report = replayed(played);
  CAPTURE(told(report));
  CHECK_FALSE(report.difference.has_value());
  REQUIRE(report.from.has_value());
  CHECK(*report.from == at);
  CHECK(report.proposals > 0);
  CHECK(report.proposals + report.unasked < 14);
  CHECK(report.configurations == 14);
}

TEST_CASE("a question that was open at the snapshot is not asked again, and counted") {
  PlayedExperiment played(learning());
  while (!played.controller().question()) played.play(1);
  played.snapshot();
  played.play();
  const ReplayReport report = replayed(played);
  CHECK_FALSE(report.difference.has_value());
  CHECK(report.unasked == 1);
}

TEST_CASE("another proposal than the searcher makes is found, with both configurations") {
  PlayedExperiment played(learning());
  played.play();
  int answers = 0;
  std::uint64_t question = 0;
  change_event(played, [&](Event& event) {
    auto* proposed = std::get_if<Proposed>(&event);
    if (proposed == nullptr || ++answers < 6) return false;
    auto answer = decoded<Answer>(proposed->answer.bytes);
    answer.proposals.front().point.front() = 0.125;
    proposed->answer.bytes = encoded(answer);
    question = proposed->question;
    return true;
  });
  const ReplayReport report = replayed(played);
  REQUIRE(report.difference.has_value());
  CHECK(report.difference->what ==
        "the answer to question " + std::to_string(question) + ", proposal 1");
  CHECK_HAS(report.difference->journaled, "\"x\":0.125");
  CHECK_FALSE(testing::has(report.difference->replayed, "\"x\":0.125"));
  CHECK(report.difference->event == report.events);
  CHECK(report.proposals >= 5);
}

TEST_CASE("the same configuration with other expectations is not a difference, and counted") {
  PlayedExperiment played(learning());
  played.play();
  change_event(played, [&](Event& event) {
    auto* proposed = std::get_if<Proposed>(&event);
    if (proposed == nullptr) return false;
    proposed->answer.bytes = encoded(decoded<OldAnswer>(proposed->answer.bytes));
    return true;
  });
  const ReplayReport report = replayed(played);
  CHECK_FALSE(report.difference.has_value());
  CHECK(report.other_numbers >= 1);
  CHECK(report.proposals == 14);
}

TEST_CASE("another verdict than events.jsonl tells is found, with its event") {
  PlayedExperiment played(learning());
  played.play();
  change_file(played, "events.jsonl", "is worse than the cut-off", "is as good as the cut-off");
  const ReplayReport report = replayed(played);
  REQUIRE(report.difference.has_value());
  CHECK_HAS(report.difference->what, "events.jsonl, verdict of trial ");
  CHECK_HAS(report.difference->journaled, "is as good as");
  CHECK_HAS(report.difference->replayed, "is worse than");
  CHECK(report.difference->event > 0);
  CHECK(report.difference->entry.starts_with("1-"));
}

TEST_CASE("a worker that waited where it had been told to go on is found") {
  PlayedExperiment played(learning());
  played.play();
  change_event(played, [](Event& event) {
    auto* said = std::get_if<FromAgent>(&event);
    auto* report = said == nullptr ? nullptr : std::get_if<Reported>(&said->event);
    if (report == nullptr || report->waiting || report->final) return false;
    report->waiting = true;
    return true;
  });
  const ReplayReport report = replayed(played);
  REQUIRE(report.difference.has_value());
  CHECK(report.difference->journaled == "it waited for a verdict");
  CHECK_HAS(report.difference->replayed, "it had been told to go on to training_iteration ");
}

TEST_CASE("attempts that were not launched, and stops that were not told, are found") {
  PlayedExperiment played(learning());
  played.play();
  PlayedExperiment other(learning());
  other.play();
  const auto attempt_ended = [](Event& event) -> AttemptEnded* {
    auto* said = std::get_if<FromAgent>(&event);
    return said == nullptr ? nullptr : std::get_if<AttemptEnded>(&said->event);
  };
  change_event(played, [&](Event& event) {
    AttemptEnded* ended = attempt_ended(event);
    if (ended == nullptr) return false;
    ended->attempt.value = 7;
    return true;
  });
  CHECK(replayed(played).difference.value().replayed == "no such attempt was launched");
  change_event(other, [&](Event& event) {
    AttemptEnded* ended = attempt_ended(event);
    if (ended == nullptr || ended->outcome != Outcome::kCompleted) return false;
    ended->outcome = Outcome::kStopped;
    return true;
  });
  CHECK(replayed(other).difference.value().journaled == "it was stopped");
}

TEST_CASE("configurations that come out otherwise are found, also those drawn at random") {
  RunOptions options = learning();
  options.searcher = {};
  PlayedExperiment played(options);
  played.play();
  CHECK_FALSE(replayed(played).difference.has_value());
  const std::string trial =
      trial_id(experiment_id_of(played.spec()), TrialNumber{3}) + "/params.json";
  change_file(played, trial, "\"x\":0.", "\"x\":0.9");
  const ReplayReport report = replayed(played);
  REQUIRE(report.difference.has_value());
  CHECK_HAS(report.difference->what, "the configuration of trial ");
  CHECK_HAS(report.difference->journaled, "\"x\":0.9");
  CHECK(report.configurations == 3);
}

TEST_CASE("lines may be missing while a sweep is not over, and not after that") {
  PlayedExperiment played(learning());
  played.play();
  std::string events = played.read("events.jsonl");
  events.resize(events.size() / 2);
  write_file_atomically(played.directory() / "events.jsonl", events);
  CHECK_FALSE(replayed(played, false).difference.has_value());
  CHECK(replayed(played).difference.value().journaled == "the file ends before it");
}

TEST_CASE("lines that nothing led to are found when the sweep is over") {
  PlayedExperiment played(learning());
  played.play();
  write_file_atomically(played.directory() / "events.jsonl",
                        played.read("events.jsonl") + "{\"event\":\"notice\",\"text\":\"?\"}\n");
  CHECK(replayed(played).difference.value().replayed == "no further line");
}

TEST_CASE("events of an older build, without its lines of rungs, compare with what they have") {
  PlayedExperiment played(learning());
  played.play();
  std::string kept;
  for (const std::string& line : [&] {
         std::vector<std::string> lines;
         std::string text = played.read("events.jsonl");
         for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
           end = text.find('\n', begin);
           lines.push_back(text.substr(begin, end - begin));
         }
         return lines;
       }()) {
    if (!testing::has(line, "\"event\":\"rung\"")) kept += line + "\n";
  }
  write_file_atomically(played.directory() / "events.jsonl", kept);
  const ReplayReport report = replayed(played);
  CHECK_FALSE(report.difference.has_value());
  CHECK(report.verdicts < 14);
}

}  // namespace
}  // namespace tune
