// The searcher around a proposer; and gp as users write it.
#include "tune/search/model_searcher.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/refusal.h"
#include "tune/testing/searcher_conformance.h"

namespace tune {
namespace {

using testing::refusal;

// Proposes the middle of the space, and notes in it what it was asked.
struct Middle : Proposer {
  explicit Middle(bool fails = false, bool gives_one_less = false, double at = 0.5)
      : fails(fails), gives_one_less(gives_one_less), at(at) {}
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override {
    if (fails) throw std::runtime_error("numbers are not what they were");
    ProposerAnswer answer;
    answer.state = question.state + "+";
    const std::size_t count = gives_one_less ? question.count - 1 : question.count;
    for (std::size_t i = 0; i < count; ++i) {
      Proposal proposal;
      proposal.point = encoding.settled(UnitPoint(encoding.size(), 0.5), random);
      if (at != 0.5) proposal.point.back() = at;
      proposal.origin = ProposalOrigin::kModel;
      proposal.note = "known " + std::to_string(question.known.trials().size()) + ", proposed " +
                      std::to_string(question.proposed) + ", state " + question.state;
      answer.proposals.push_back(std::move(proposal));
    }
    return answer;
  }
  void check(const Encoding& encoding) const override {
    if (encoding.size() > 2) throw Error(ErrorCode::kBadInput, "config: at most two parameters");
  }
  std::size_t start_up() const override { return begins_with; }
  bool fails;
  bool gives_one_less;
  double at;  // the last coordinate
  std::size_t begins_with = 0;
};

const SearchSpace kSpace = {{"lr", loguniform(1e-4, 1e-1)}, {"act", choice({"relu", "tanh"})}};

SearcherSetup setup_of(std::int64_t num_samples, std::vector<Config> points = {}) {
  return {kSpace, num_samples, std::move(points), {"loss", Mode::kMin, 7}};
}

std::unique_ptr<ModelSearcher> made(const SearcherSetup& setup, const Middle& middle = Middle()) {
  auto searcher = std::make_unique<ModelSearcher>("middle", std::make_shared<Middle>(middle));
  searcher->configure(setup);
  return searcher;
}

TEST_CASE("gp keeps to what every searcher keeps to") {
  SearcherSetup setup = setup_of(8);
  testing::check_searcher([] { return gp().make(); }, setup);
  testing::check_searcher([] { return gp({.start_up = 2, .random_share = 0}).make(); }, setup);
  setup.points_to_evaluate = {{{"lr", 0.01}, {"act", "tanh"}}, {{"act", "relu"}}};
  testing::check_searcher([] { return gp().make(); }, setup);
  setup.space.set("twice", sample_from([](const Config& config) {
                    return Value(2 * config.get<double>("lr"));
                  }));
  testing::check_searcher([] { return gp().make(); }, setup);
}

TEST_CASE("a sweep begins alike with any number of places") {
  const auto begun = [](const SearcherSpec& spec, std::size_t at_once) {
    const auto searcher = spec.make();
    searcher->configure(setup_of(20));
    std::vector<std::string> configs;
    while (configs.size() < 5) {
      const std::string answer = searcher->question(at_once)();
      for (const Config& config : searcher->configurations(answer))
        configs.push_back(config.dump());
      searcher->answer(answer);
    }
    CHECK(std::set<std::string>(configs.begin(), configs.end()).size() == configs.size());
    configs.resize(5);
    return configs;
  };
  for (const SearcherSpec& spec : {gp(), tpe(), automatic(), cma_es({.population = 5}), nsga2()}) {
    const std::vector<std::string> one_by_one = begun(spec, 1);
    CHECK(begun(spec, 2) == one_by_one);
    CHECK(begun(spec, 64) == one_by_one);
  }
}

TEST_CASE("tpe and cma_es keep to it, too") {
  SearcherSetup setup = setup_of(8, {{{"lr", 0.01}}});
  testing::check_searcher([] { return tpe({.start_up = 3}).make(); }, setup);
  testing::check_searcher([] { return cma_es({.population = 4}).make(); }, setup);
  setup.space = {{"opt", choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}}, "none"})}};
  setup.points_to_evaluate.clear();
  const auto by_tpe = tpe({.start_up = 3}).make();
  by_tpe->configure(setup);
  for (std::uint32_t i = 0; i < 8; ++i) {
    REQUIRE(suggest_now(*by_tpe, TrialNumber{i}).has_value());
    testing::live(*by_tpe, TrialNumber{i}, i);
  }
  CHECK_FALSE(refusal([&] { cma_es().make()->configure(setup); }, ErrorCode::kBadInput).empty());
}

TEST_CASE("so does halton, which needs no metric and gives one list whatever comes back") {
  const SearcherSetup setup = setup_of(8, {{{"lr", 0.01}}});
  testing::check_searcher([] { return halton().make(); }, setup);
  const auto list_of = [](bool with_results) {
    SearcherSetup of_six = setup_of(6);
    if (!with_results) of_six.objective.metric.clear();
    const auto searcher = halton().make();
    searcher->configure(of_six);
    std::vector<Config> list;
    for (std::uint32_t i = 0; i < 6; ++i) {
      list.push_back(suggest_now(*searcher, TrialNumber{i}).value());
      testing::live(*searcher, TrialNumber{i}, with_results ? 0.5 : std::nan(""));
    }
    return list;
  };
  CHECK(list_of(true) == list_of(false));
  CHECK(searcher_from_config("halton", {}).name() == "halton");
  CHECK_HAS(refusal([] { searcher_from_config("halton", {{"seed", 1}}); }), "it has none");
}

// Keeps the questions that it is asked.
struct Listening : Middle {
  ProposerAnswer propose(const ProposerQuestion& question, const Encoding& encoding,
                         RandomStream& random) const override {
    in_stock.push_back(question.in_stock);
    is_last.push_back(question.is_last);
    return Middle::propose(question, encoding, random);
  }
  mutable std::vector<std::size_t> in_stock;
  mutable std::vector<bool> is_last;
};

TEST_CASE("a proposer is told how many will be in stock, and that no more will be asked for") {
  const auto proposer = std::make_shared<Listening>();
  ModelSearcher searcher("middle", proposer);
  searcher.configure(setup_of(9));
  searcher.answer(searcher.question(3)());
  searcher.suggest(TrialNumber{0});
  searcher.answer(searcher.question(4)());  // two wait
  CHECK(proposer->in_stock == std::vector<std::size_t>{3, 6});
  searcher.question(1)();
  searcher.question(2)();  // of nine, one has begun and six wait
  CHECK(proposer->is_last == std::vector<bool>{false, false, false, true});
  searcher.set_num_samples(-1);
  searcher.question(2)();
  CHECK_FALSE(proposer->is_last.back());
}

TEST_CASE("a proposer is asked with all trials, what waits, its state, and how many it has made") {
  const auto searcher = made(setup_of(9));
  CHECK(searcher->ready() == std::size_t{0});
  searcher->answer(searcher->question(2)());
  CHECK(searcher->ready() == std::size_t{2});
  CHECK(searcher->newest_proposal() == nullptr);
  searcher->suggest(TrialNumber{0});
  REQUIRE(searcher->newest_proposal() != nullptr);
  CHECK(searcher->newest_proposal()->note == "known 0, proposed 0, state ");
  searcher->answer(searcher->question(1)());
  searcher->suggest(TrialNumber{1});
  searcher->suggest(TrialNumber{2});
  // Trial 0, and the proposal that waited.
  CHECK(searcher->newest_proposal()->note == "known 2, proposed 2, state +");
  CHECK(searcher->history().trials().size() == 3);
}

TEST_CASE("a question is answered by what was known when it was put") {
  const auto searcher = made(setup_of(9));
  const Searcher::Question question = searcher->question(1);
  searcher->answer(searcher->question(2)());
  searcher->suggest(TrialNumber{0});
  const auto other = made(setup_of(9));
  CHECK(question() == other->question(1)());
}

TEST_CASE("results, pauses and ends reach the history") {
  const auto searcher = made(setup_of(9));
  const auto standing = [&] { return searcher->history().trials()[0].standing; };
  suggest_now(*searcher, TrialNumber{0});
  const Reported report = testing::report(0, 3, Result{{"loss", 0.25}});
  searcher->result(TrialNumber{0}, report);
  searcher->result(TrialNumber{0}, testing::report(0, 4, Result{{"other", 1}}));
  CHECK(searcher->history().trials()[0].newest == ValueAt{3, -0.25});
  searcher->pause_trial(TrialNumber{0});
  CHECK(standing() == Standing::kPaused);
  searcher->resume_trial(TrialNumber{0});
  CHECK(standing() == Standing::kRunning);
  searcher->end_trial(TrialNumber{0}, TrialEnd::kError, &report);
  CHECK(standing() == Standing::kFailed);
  searcher->resume_trial(TrialNumber{0});  // tried again
  CHECK(standing() == Standing::kRunning);
}

TEST_CASE("a trial that a user has added is learnt from when it is over, if it lies in the space") {
  const auto searcher = made(setup_of(9));
  std::uint32_t next = 0;
  const auto end = [&](const Config& config, const Result& result) {
    searcher->end_added(config, TrialEnd::kStopped, testing::report(next++, 3, result));
    return searcher->history().trials().size();
  };
  CHECK(end({{"lr", 0.01}, {"act", "relu"}}, {{"loss", 0.25}}) == 1);
  CHECK(searcher->history().trials()[0].number == std::nullopt);
  CHECK(searcher->history().trials()[0].newest == ValueAt{3, -0.25});
  CHECK(end({{"lr", 7}, {"act", "relu"}}, {{"loss", 0.25}}) == 1);      // outside
  CHECK(end({{"lr", 0.01}, {"act", "relu"}}, {{"other", 0.25}}) == 1);  // says nothing
}

TEST_CASE("one that ends again, after a retry, is learnt once, by its newest end") {
  const auto searcher = made(setup_of(9));
  const Config config{{"lr", 0.01}, {"act", "relu"}};
  const auto end = [&](std::uint32_t trial, TrialEnd how, double loss) {
    searcher->end_added(config, how, testing::report(trial, 3, Result{{"loss", loss}}));
  };
  end(1, TrialEnd::kError, 0.25);
  end(2, TrialEnd::kCompleted, 0.75);  // another one, alike
  const auto resumed = made(setup_of(9));
  resumed->restore(searcher->save());
  for (ModelSearcher* each : {searcher.get(), resumed.get()}) {
    each->end_added(config, TrialEnd::kCompleted, testing::report(1, 2, Result{{"loss", 0.5}}));
    const auto& known = each->history().trials();
    REQUIRE(known.size() == 2);
    CHECK(known[0].standing == Standing::kCompleted);
    CHECK(known[0].newest == ValueAt{2, -0.5});
    CHECK(known[1].newest == ValueAt{3, -0.75});
  }
  CHECK(resumed->save() == searcher->save());
}

TEST_CASE("one that was added has a number for each of several objectives") {
  SearcherSetup setup = setup_of(9);
  setup.objective = {"", Mode::kMax, 7, {{"loss", Mode::kMin}, {"acc"}}};
  const auto searcher = made(setup);
  searcher->end_added({{"lr", 0.01}, {"act", "relu"}}, TrialEnd::kCompleted,
                      testing::report(1, 3, Result{{"loss", 0.25}, {"acc", 0.5}}));
  REQUIRE(searcher->history().trials().size() == 1);
  CHECK(searcher->history().trials()[0].newest == ValueAt{3, -0.25, {-0.25, 0.5}});
}

TEST_CASE("where a proposer fails, proposals are drawn, and say why") {
  for (const bool throws : {false, true}) {
    CAPTURE(throws);
    const auto searcher = made(setup_of(9), Middle(throws, !throws));
    searcher->answer(searcher->question(3)());
    std::set<std::string> configs;
    for (std::uint32_t i = 0; i < 3; ++i) {
      configs.insert(searcher->suggest(TrialNumber{i})->dump());
      CHECK(searcher->newest_proposal()->origin == ProposalOrigin::kFallback);
      CHECK_HAS(searcher->newest_proposal()->note,
                throws ? "numbers are not what they were" : "2 of 3 proposals were made");
    }
    CHECK(configs.size() == 3);
  }
}

TEST_CASE("a proposal whose numbers failed is drawn, and says so") {
  for (const double at : {std::nan(""), 1.5, std::numeric_limits<double>::infinity()}) {
    CAPTURE(at);
    const auto searcher = made(setup_of(9), Middle(false, false, at));
    CHECK(suggest_now(*searcher, TrialNumber{0})->get<double>("lr") < 0.1);
    CHECK(searcher->newest_proposal()->origin == ProposalOrigin::kFallback);
    CHECK_HAS(searcher->newest_proposal()->note, "numbers failed");
    Middle beginning(false, false, at);
    beginning.begins_with = 2;  // so that the first are asked for one by one
    const auto whole = made(setup_of(9), beginning);
    whole->answer(whole->question(3)());
    whole->suggest(TrialNumber{0});
    CHECK_HAS(whole->newest_proposal()->note, "numbers failed");
  }
}

TEST_CASE("earlier trials that break a rule of where say nothing") {
  SearcherSetup setup = setup_of(4);
  setup.where = {"lr <= 0.01"};
  for (const double lr : {0.005, 0.05}) {
    setup.earlier.push_back({{{"lr", lr}, {"act", "relu"}}, {{3, 0.5}}});
  }
  const auto searcher = made(setup);
  REQUIRE(searcher->history().trials().size() == 1);
}

TEST_CASE("with results of earlier experiments gp begins with its model, and repeats none") {
  SearcherSetup setup = setup_of(4);
  for (int i = 0; i < 8; ++i) {
    const double lr = std::pow(10, -4 + 0.35 * i);
    setup.earlier.push_back({{{"lr", lr}, {"act", "relu"}}, {{3, std::abs(i - 4.0)}}});
  }
  setup.earlier.push_back({{{"lr", 7.0}, {"act", "relu"}}, {{3, 0.1}}});  // outside
  const auto searcher = gp({.start_up = 5, .random_share = 0}).make();
  searcher->configure(setup);
  CHECK(searcher->total() == 4u);
  const std::optional<Config> first = suggest_now(*searcher, TrialNumber{0});
  REQUIRE(first.has_value());
  const Proposal& proposal = *searcher->newest_proposal();
  CHECK(proposal.origin == ProposalOrigin::kModel);
  CHECK(proposal.results_known == 8);
  CHECK(proposal.neighbours.empty());  // they are not trials of this experiment
  // Near the best earlier one, at i = 4: 10^-2.6.
  CHECK(std::abs(std::log10(first->get<double>("lr")) + 2.6) < 0.5);
  for (std::uint32_t i = 1; i < 4; ++i) suggest_now(*searcher, TrialNumber{i});
  CHECK_FALSE(suggest_now(*searcher, TrialNumber{4}).has_value());
  // A resume knows them from the state as well.
  const auto resumed = gp({.start_up = 5, .random_share = 0}).make();
  resumed->configure(setup);
  resumed->restore(searcher->save());
  CHECK(resumed->save() == searcher->save());
}

TEST_CASE("the values of neighbours are those of the moment, in the metric's own direction") {
  const auto searcher = gp({.start_up = 2, .random_share = 0}).make();
  searcher->configure(setup_of(4));
  for (std::uint32_t i = 0; i < 2; ++i) {
    suggest_now(*searcher, TrialNumber{i});
    const Reported report = testing::report(i, 5, Result{{"loss", 0.25 + i}});
    searcher->result(TrialNumber{i}, report);
    searcher->end_trial(TrialNumber{i}, TrialEnd::kCompleted, &report);
  }
  suggest_now(*searcher, TrialNumber{2});
  const Proposal& proposal = *searcher->newest_proposal();
  REQUIRE(proposal.neighbours.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(proposal.neighbour_values.at(i) == ValueAt{5, 0.25 + proposal.neighbours[i].value});
  }
}

TEST_CASE("of several objectives neighbours have the values of all, each in its own direction") {
  const auto searcher = gp({.start_up = 2, .random_share = 0}).make();
  SearcherSetup setup = setup_of(4);
  setup.objective = {"", Mode::kMax, 3, {{"loss", Mode::kMin}, {"acc"}}, {}};
  searcher->configure(setup);
  for (std::uint32_t i = 0; i < 2; ++i) {
    suggest_now(*searcher, TrialNumber{i});
    const Reported report = testing::report(i, 5, Result{{"loss", 0.25 + i}, {"acc", 7.0 + i}});
    searcher->result(TrialNumber{i}, report);
    searcher->end_trial(TrialNumber{i}, TrialEnd::kCompleted, &report);
  }
  suggest_now(*searcher, TrialNumber{2});
  const Proposal& proposal = *searcher->newest_proposal();
  REQUIRE(proposal.neighbours.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const double number = proposal.neighbours[i].value;
    CHECK(proposal.neighbour_values.at(i) ==
          ValueAt{5, 0.25 + number, {0.25 + number, 7 + number}});
  }
}

TEST_CASE("points_to_evaluate come first and are learnt from; what they leave out is drawn") {
  const auto searcher = made(setup_of(5, {{{"lr", 0.01}, {"act", "tanh"}}, {{"act", "relu"}}}));
  CHECK(searcher->ready() == std::size_t{2});
  CHECK(searcher->suggest(TrialNumber{0})->dump() == R"({"lr":0.01,"act":"tanh"})");
  CHECK(searcher->newest_proposal() == nullptr);
  const Config second = searcher->suggest(TrialNumber{1}).value();
  CHECK(second.get<std::string>("act") == "relu");
  CHECK(second.get<double>("lr") >= 1e-4);
  CHECK(second.get<double>("lr") < 1e-1);
  CHECK(searcher->history().trials().size() == 2);
  CHECK(searcher->ready() == std::size_t{0});
  CHECK(made(setup_of(5, {{{"act", "relu"}}}))->suggest(TrialNumber{0}) ==
        made(setup_of(7, {{{"act", "relu"}}}))->suggest(TrialNumber{0}));
}

TEST_CASE("a point may take an option of a choice, and keeps what where says") {
  const SearchSpace optimiser = choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}},
                                        {{"kind", "adam"}, {"beta", uniform(0, 1)}},
                                        "none"});
  SearcherSetup setup = {
      {{"lr", uniform(0, 1)}, {"opt", optimiser}}, 8, {}, {"loss", Mode::kMin, 7}};
  setup.where = {"lr < opt/beta"};
  setup.points_to_evaluate = {{{"lr", 0.5}, {"opt", {{"kind", "adam"}}}}, {{"opt", "none"}}};
  const auto searcher = gp().make();
  searcher->configure(setup);
  const Config first = searcher->suggest(TrialNumber{0}).value();
  CHECK(first.get<double>("lr") == 0.5);
  CHECK(first.get<double>("opt/beta") > 0.5);
  CHECK(searcher->suggest(TrialNumber{1})->get<std::string>("opt") == "none");
  for (std::uint32_t i = 2; i < 8; ++i) {
    const Config config = suggest_now(*searcher, TrialNumber{i}).value();
    if (config.contains("opt/beta"))
      CHECK(config.get<double>("lr") < config.get<double>("opt/beta"));
  }
  setup.points_to_evaluate = {{{"lr", 0.5}, {"opt", {{"kind", "adam"}, {"beta", 0.25}}}}};
  CHECK_HAS(refusal([&] { gp().make()->configure(setup); }, ErrorCode::kBadInput),
            "points_to_evaluate/0: it breaks a rule of where");
  setup.points_to_evaluate = {{{"opt", {{"kind", "adam"}, {"beta", 7}}}}};
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    setup.objective.seed = seed;
    CHECK_HAS(refusal([&] { gp().make()->configure(setup); }, ErrorCode::kBadInput),
              "points_to_evaluate/0: 'opt/beta' is 7.0, which");
  }
}

TEST_CASE("numbers of a point have the types that the space draws, here too") {
  SearcherSetup setup = {{{"n", randint(1, 9)}, {"x", uniform(0, 9)}, {"batch", 64}},
                         2,
                         {{{"n", 3.0}, {"x", 2}, {"batch", 32.0}}},
                         {"loss", Mode::kMin, 7}};
  const auto searcher = gp().make();
  searcher->configure(setup);
  CHECK(searcher->suggest(TrialNumber{0})->dump() == R"({"n":3,"x":2.0,"batch":32})");
}

TEST_CASE("a point that takes options of many choices is completed, whatever the seed") {
  // Six choices of four options: one draw in 4^6 = 4096 has the options of the point.
  SearcherSetup setup = {SearchSpace(), 2, {Config()}, {"loss", Mode::kMin, 0}};
  for (const char* part : {"a", "b", "c", "d", "e", "f"}) {
    setup.space.set(part, choice({{{"kind", "k0"}, {"x", uniform(0, 1)}},
                                  {{"kind", "k1"}, {"x", uniform(0, 1)}, {"y", uniform(0, 1)}},
                                  {{"kind", "k2"}, {"x", uniform(2, 3)}},
                                  {{"x", uniform(4, 5)}, {"n", randint(0, 9)}}}));
  }
  Config& point = setup.points_to_evaluate.front();
  for (const char* part : {"a", "b", "c"}) point.set(std::string(part) + "/kind", "k1");
  for (const char* part : {"d", "e", "f"}) point.set(std::string(part) + "/x", 4.5);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    setup.objective.seed = seed;
    const auto searcher = gp().make();
    searcher->configure(setup);
    const Config config = searcher->suggest(TrialNumber{0}).value();
    CHECK(config.get<std::string>("c/kind") == "k1");
    CHECK(config.get<double>("c/y") < 1);
    CHECK(config.get<double>("f/x") == 4.5);
    CHECK(config.get<int>("f/n") < 9);
  }
}

TEST_CASE("what cannot be searched is refused in words") {
  const auto told = [](const SearcherSetup& setup) {
    return refusal([&] { made(setup); }, ErrorCode::kBadInput);
  };
  SearcherSetup without_metric = setup_of(5);
  without_metric.objective.metric.clear();
  CHECK_HAS(told(without_metric), "searcher middle: it learns from the values of a metric");
  SearcherSetup grid = setup_of(5);
  grid.space.set("layers", grid_search({1, 2}));
  CHECK_HAS(told(grid), "config: 'layers' is a grid_search");
  SearcherSetup constant = setup_of(5);
  constant.space = {{"lr", 0.1}};
  CHECK_HAS(told(constant), "config: nothing in it is searched");
  SearcherSetup large = setup_of(5);
  large.space.set("more", uniform(0, 1));
  CHECK_HAS(told(large), "config: at most two parameters");
  CHECK_HAS(told(setup_of(5, {{{"lr", 3}}})), "points_to_evaluate/0: 'lr' is 3");
  CHECK_HAS(told(setup_of(5, {{{"act", "none"}}})), "points_to_evaluate/0: 'act' is \"none\"");
  CHECK_HAS(told(setup_of(5, {{{"rl", 3}}})), "points_to_evaluate/0: there is no 'rl' in config");
  CHECK_HAS(told(setup_of(1, {Config{}, Config{}})), "do not fit into num_samples 1");
}

TEST_CASE("answers and states with points that are not in the space are refused") {
  const auto searcher = made(setup_of(5));
  SearcherSetup narrow = setup_of(5);
  narrow.space = {{"lr", loguniform(1e-4, 1e-1)}};
  const auto other = made(narrow);
  const std::string before = searcher->save();
  CHECK_HAS(refusal([&] { searcher->answer(other->question(1)()); }, ErrorCode::kProtocol),
            "a point that is not in a space of 2 parameters");
  suggest_now(*other, TrialNumber{0});
  refusal([&] { searcher->restore(other->save()); }, ErrorCode::kProtocol);
  const auto basic = basic_variant().make();
  basic->configure(setup_of(5));
  refusal([&] { searcher->restore(basic->save()); }, ErrorCode::kProtocol);
  const auto named = gp().make();
  named->configure(setup_of(5));
  CHECK_HAS(refusal([&] { named->restore(before); }, ErrorCode::kProtocol),
            "the state is of 'middle', not of 'gp'");
  CHECK(searcher->save() == before);
}

// ---- gp -----------------------------------------------------------------------------------------

// The distance of the best of so many trials to lr 0.01 with relu.
double distance(Searcher& searcher, std::uint32_t trials) {
  double best = std::numeric_limits<double>::infinity();
  for (std::uint32_t i = 0; i < trials; ++i) {
    const Config config = suggest_now(searcher, TrialNumber{i}).value();
    const double off = std::log10(config.get<double>("lr")) + 2;
    const double loss = off * off + (config.get<std::string>("act") == "relu" ? 0 : 1);
    testing::live(searcher, TrialNumber{i}, loss);
    best = std::min(best, loss);
  }
  return best;
}

TEST_CASE("gp and tpe come closer than random search") {
  double by_gp = 0;
  double by_tpe = 0;
  double by_chance = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SearcherSetup setup = setup_of(25);
    setup.objective.seed = seed;
    for (const auto& [spec, sum] : {std::pair{gp(), &by_gp},
                                    {tpe({.start_up = 5}), &by_tpe},
                                    {basic_variant(), &by_chance}}) {
      const auto searcher = spec.make();
      searcher->configure(setup);
      *sum += distance(*searcher, 25);
    }
  }
  CHECK(by_gp < by_chance / 3);
  CHECK(by_tpe < by_chance);
}

TEST_CASE("a metric that is NaN or alike for all stops no sweep, nor do trials that all fail") {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const SearcherSpec& spec :
       {gp(), tpe({.start_up = 5}), cma_es({.population = 4}), automatic()}) {
    for (const double value : {std::nan(""), 0.5, infinite}) {
      const auto searcher = spec.make();
      searcher->configure(setup_of(12));
      for (std::uint32_t i = 0; i < 12; ++i) {
        REQUIRE(suggest_now(*searcher, TrialNumber{i}).has_value());
        testing::live(*searcher, TrialNumber{i}, value);
      }
      CHECK_HAS(searcher->newest_proposal()->note, "alike");
    }
    const auto searcher = spec.make();
    searcher->configure(setup_of(12));
    std::set<std::string> configs;
    for (std::uint32_t i = 0; i < 12; ++i) {
      configs.insert(suggest_now(*searcher, TrialNumber{i})->dump());
      searcher->end_trial(TrialNumber{i}, TrialEnd::kError, nullptr);
    }
    CHECK(configs.size() == 12);
    CHECK_HAS(searcher->newest_proposal()->note, "alike");
  }
}

TEST_CASE("results without the metric are none for gp") {
  const auto searcher = gp().make();
  searcher->configure(setup_of(12));
  for (std::uint32_t i = 0; i < 12; ++i) {
    REQUIRE(suggest_now(*searcher, TrialNumber{i}).has_value());
    const Reported other = testing::report(i, 1, Result{{"other", 1}});
    searcher->result(TrialNumber{i}, other);
    searcher->end_trial(TrialNumber{i}, TrialEnd::kCompleted, &other);
  }
  CHECK(searcher->newest_proposal()->origin == ProposalOrigin::kStartUp);
}

TEST_CASE("parameters of gp are checked and told") {
  CHECK(gp().name() == "gp");
  CHECK(gp().parameters().dump() == R"({"start_up":5,"random_share":0.1})");
  const auto refused = [](const Config& parameters) {
    return refusal([&] { searcher_from_config("gp", parameters); }, ErrorCode::kBadInput);
  };
  CHECK(searcher_from_config("gp", {{"start_up", 7}, {"random_share", 0}}).parameters().dump() ==
        R"({"start_up":7,"random_share":0.0})");
  CHECK_HAS(refused({{"start_up", 1}}), "searcher gp: start_up is 1: it must be at least 2");
  CHECK_HAS(refused({{"random_share", 1.5}}), "searcher gp: random_share is 1.5");
  CHECK_HAS(refused({{"random_share", std::nan("")}}), "random_share is nan");
  CHECK_HAS(refused({{"startup", 3}}), "there is no parameter 'startup': did you mean 'start_up'?");
  CHECK_HAS(refused({{"start_up", "few"}}), "start_up");
  CHECK_HAS(refusal([] { searcher_from_config("pg", {}); }, ErrorCode::kBadInput),
            "there is no searcher 'pg': ");
  CHECK_HAS(refusal([] { searcher_from_config("tpe", {{"start_up", 0}}); }), "start_up is 0");
  CHECK_HAS(refusal([] { searcher_from_config("tpe", {{"random_share", 2}}); }), "is 2");
  CHECK_HAS(refusal([] {
              searcher_from_config("cma_es", {{"population", 2}});
            }),
            "searcher cma_es: population is 2");
  CHECK_HAS(refusal([] { searcher_from_config("cma_es", {{"sigma", 2}}); }), "population");
  CHECK(searcher_from_config("tpe", tpe().parameters()).parameters() == tpe().parameters());
  CHECK(searcher_from_config("cma_es", {}).name() == "cma_es");
}

}  // namespace
}  // namespace tune
