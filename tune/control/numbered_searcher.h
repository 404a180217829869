// NumberedSearcher: a searcher whose count is not the sweep's. A searcher counts its suggestions 0,
// 1, 2 ...; trials that a user adds have numbers in between, of which it knows nothing. All calls
// are in the sweep's numbers, and the searcher hears its own. Pure.
//
// The simpler way is to let the searcher skip numbers. It fails with custom searchers, which keep
// their suggestions in a list by that number, and with lists that are the same whatever happens:
// the k-th suggestion of a seed would be another one in a sweep to which a trial was added.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/trial.h"
#include "tune/search/proposal.h"
#include "tune/search/searcher.h"

namespace tune {

class NumberedSearcher : public Searcher {
 public:
  // A configured one.
  explicit NumberedSearcher(std::unique_ptr<Searcher> searcher) : searcher_(std::move(searcher)) {}

  // A user adds the trial of this number; suggestions go on behind it.
  void skip(TrialNumber trial) { skipped_.insert(trial); }
  // Such a trial is over: what it has shown counts for the next suggestions.
  void end_added(const Trial& trial, TrialEnd end);

  void configure(const SearcherSetup& setup) override { searcher_->configure(setup); }
  bool takes_several_objectives() const override { return searcher_->takes_several_objectives(); }
  void set_num_samples(std::int64_t num_samples) override {
    searcher_->set_num_samples(num_samples);
  }
  std::optional<std::uint64_t> total() const override;  // with those that users have added
  std::optional<Config> suggest(TrialNumber trial) override;
  void result(TrialNumber trial, const ResultView& result) override;
  void pause_trial(TrialNumber trial) override;
  void resume_trial(TrialNumber trial) override;
  void end_trial(TrialNumber trial, TrialEnd end, const Reported* last) override;
  // Without the numbers that it skips: they stand in the trials.
  std::string save() const override { return searcher_->save(); }
  void restore(std::string_view state) override {
    skipped_.clear();
    searcher_->restore(state);
  }
  std::optional<std::size_t> ready() const override { return searcher_->ready(); }
  Question question(std::size_t count) const override { return searcher_->question(count); }
  void answer(std::string_view answer) override { searcher_->answer(answer); }
  std::vector<Config> configurations(std::string_view answer) const override {
    return searcher_->configurations(answer);
  }
  const Proposal* newest_proposal() const override { return proposal_ ? &*proposal_ : nullptr; }

 private:
  // Nothing for a trial that a user has added.
  std::optional<TrialNumber> inner(TrialNumber trial) const;
  TrialNumber outer(TrialNumber suggestion) const;

  std::unique_ptr<Searcher> searcher_;
  std::set<TrialNumber> skipped_;
  std::optional<Proposal> proposal_;  // the newest, in the sweep's numbers
};

}  // namespace tune
