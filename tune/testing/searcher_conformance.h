// The promises of every Searcher (tune/search/searcher.h). For tests by doctest, which you bring:
//
//   #include <tune/testing/searcher_conformance.h>
//   TEST_CASE("mine keeps the contract") {
//     tune::testing::check_searcher([] { return std::make_unique<Mine>(); },
//                                   {.num_samples = 6, .objective = {"loss", tune::Mode::kMin,
//                                   1}});
//   }
//
// `make` gives a fresh searcher that is not configured yet; `setup` has a seed and a finite
// num_samples, at least 4 trials in all. Not for how good its proposals are.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/wire.h"
#include "tune/search/searcher.h"
#include "tune/search/where.h"
#include "tune/testing/reports.h"

namespace tune::testing {

using MakeSearcher = std::function<std::unique_ptr<Searcher>()>;

inline std::unique_ptr<Searcher> configured(const MakeSearcher& make, const SearcherSetup& setup) {
  auto searcher = make();
  REQUIRE(searcher != nullptr);
  searcher->configure(setup);
  return searcher;
}

// Tells the searcher that the trial reported `loss` once and completed.
inline void live(Searcher& searcher, TrialNumber trial, double loss) {
  const Reported reported = report(trial.value, 1, Result{{"loss", loss}});
  searcher.result(trial, reported);
  searcher.end_trial(trial, TrialEnd::kCompleted, &reported);
}

// The configurations of trials [first, last) as text; fewer when there are no more.
inline std::vector<std::string> run_trials(Searcher& searcher, std::uint32_t first,
                                           std::uint32_t last) {
  std::vector<std::string> configs;
  for (std::uint32_t i = first; i < last; ++i) {
    const std::optional<Config> config = suggest_now(searcher, TrialNumber{i});
    if (!config) break;
    configs.push_back(config->dump());
    live(searcher, TrialNumber{i}, 1.0 / (i + 1));
  }
  return configs;
}

inline void check_same_proposals(const MakeSearcher& make, const SearcherSetup& setup) {
  const auto first = run_trials(*configured(make, setup), 0, 1000);
  CHECK(first.size() >= 4);
  CHECK(run_trials(*configured(make, setup), 0, 1000) == first);
}

inline void check_end(const MakeSearcher& make, const SearcherSetup& setup) {
  const auto searcher = configured(make, setup);
  const auto count = static_cast<std::uint32_t>(run_trials(*searcher, 0, 1000).size());
  if (const auto total = searcher->total()) CHECK(*total == count);
  CHECK_FALSE(suggest_now(*searcher, TrialNumber{count}).has_value());
  CHECK_FALSE(suggest_now(*searcher, TrialNumber{count}).has_value());
}

inline void check_every_key(const MakeSearcher& make, const SearcherSetup& setup) {
  const auto searcher = configured(make, setup);
  const std::optional<Config> config = suggest_now(*searcher, TrialNumber{0});
  REQUIRE(config.has_value());
  for (const auto& [path, domain] : setup.space.domains()) {
    CAPTURE(path);
    CHECK(config->contains(path));
  }
}

// Configurations that break `where` would be tried: nothing else looks at it.
inline void check_where(const MakeSearcher& make, const SearcherSetup& setup) {
  const Where where(setup.where, setup.space);
  const auto searcher = configured(make, setup);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::optional<Config> config = suggest_now(*searcher, TrialNumber{i});
    if (!config) break;
    CAPTURE(config->dump());
    CHECK(where.holds(*config));
    live(*searcher, TrialNumber{i}, 1.0 / (i + 1));
  }
}

// A searcher saved anywhere and restored into a fresh one goes on as if it had not been
// interrupted.
inline void check_restore(const MakeSearcher& make, const SearcherSetup& setup) {
  const auto whole = run_trials(*configured(make, setup), 0, 1000);
  for (std::uint32_t at = 0; at <= whole.size(); ++at) {
    CAPTURE(at);
    const auto before = configured(make, setup);
    run_trials(*before, 0, at);
    const std::string state = before->save();
    const auto after = configured(make, setup);
    after->restore(state);
    CHECK(after->save() == state);
    CHECK(after->total() == before->total());
    CHECK(run_trials(*after, at, 1000) ==
          std::vector<std::string>(whole.begin() + at, whole.end()));
  }
}

inline void check_foreign_states(const MakeSearcher& make, const SearcherSetup& setup) {
  const auto searcher = configured(make, setup);
  const auto before = run_trials(*configured(make, setup), 0, 1000);
  const std::string own = searcher->save();
  std::vector<std::string> foreign = {"", "\xc1", encoded(std::string("text")),
                                      encoded(std::vector<std::string>{"another", "state"}),
                                      own + '\0'};
  for (std::size_t size = 0; size < own.size(); ++size) foreign.push_back(own.substr(0, size));
  for (const std::string& state : foreign) {
    CAPTURE(state);
    try {
      searcher->restore(state);
      FAIL_CHECK("a foreign state was taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kProtocol);
    }
  }
  CHECK(run_trials(*searcher, 0, 1000) == before);  // and left no trace
}

// More samples than the searcher began with: earlier proposals stay, more follow.
inline void check_more_samples(const MakeSearcher& make, const SearcherSetup& setup) {
  const auto searcher = configured(make, setup);
  const auto before = run_trials(*searcher, 0, 1000);
  searcher->set_num_samples(setup.num_samples * 2);
  const auto count = static_cast<std::uint32_t>(before.size());
  const auto more = run_trials(*searcher, count, 1000);
  CHECK(!more.empty());
  if (const auto total = searcher->total()) CHECK(*total == before.size() + more.size());
  SearcherSetup larger = setup;
  larger.num_samples *= 2;
  auto all = before;
  all.insert(all.end(), more.begin(), more.end());
  CHECK(run_trials(*configured(make, larger), 0, 1000) == all);
}

inline void check_silent_trials(const MakeSearcher& make, const SearcherSetup& setup) {
  const auto searcher = configured(make, setup);
  REQUIRE(suggest_now(*searcher, TrialNumber{0}).has_value());
  searcher->end_trial(TrialNumber{0}, TrialEnd::kError, nullptr);  // never reported
  REQUIRE(suggest_now(*searcher, TrialNumber{1}).has_value());
  REQUIRE(suggest_now(*searcher, TrialNumber{2}).has_value());  // two at once
  live(*searcher, TrialNumber{2}, 0.5);
  searcher->pause_trial(TrialNumber{1});
  searcher->resume_trial(TrialNumber{1});
  searcher->end_trial(TrialNumber{1}, TrialEnd::kStopped, nullptr);
  CHECK(suggest_now(*searcher, TrialNumber{3}).has_value());
}

// For a searcher that answers questions: an answer is of the moment of its question, is handed out
// in order and once, and is part of the state until then.
inline void check_answers(const MakeSearcher& make, const SearcherSetup& setup) {
  const auto asked = configured(make, setup);
  if (!asked->ready()) return;
  while (asked->ready() == std::size_t{0}) asked->answer(asked->question(1)());
  const std::size_t ready = *asked->ready();
  const Searcher::Question question = asked->question(2);
  asked->suggest(TrialNumber{0});
  live(*asked, TrialNumber{0}, 0.5);
  const std::string answer = question();
  CHECK(answer.size() <= kMaxAnswerBytes);
  asked->answer(answer);
  CHECK(*asked->ready() == ready + 1);
  const auto after = configured(make, setup);
  after->restore(asked->save());
  CHECK(after->ready() == asked->ready());
  for (std::uint32_t i = 1; i <= ready + 1 && i < 4; ++i) {
    const auto config = asked->suggest(TrialNumber{i});
    REQUIRE(config.has_value());
    CHECK(after->suggest(TrialNumber{i}) == config);
  }
  const std::string before = asked->save();
  CHECK_THROWS_AS(asked->answer("\xc1"), Error);
  CHECK_THROWS_AS(asked->answer(answer.substr(0, answer.size() / 2)), Error);
  CHECK(asked->save() == before);
}

inline void check_searcher(const MakeSearcher& make, const SearcherSetup& setup) {
  check_same_proposals(make, setup);
  check_end(make, setup);
  check_every_key(make, setup);
  check_where(make, setup);
  check_restore(make, setup);
  check_foreign_states(make, setup);
  check_more_samples(make, setup);
  check_silent_trials(make, setup);
  check_answers(make, setup);
}

}  // namespace tune::testing
