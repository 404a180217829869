// ModelSearcher: the searcher around a Proposer, which learns from results: tune::gp and its like.
// It keeps the encoding of the space, the history of trials, what was proposed and has not begun,
// and the random streams; the proposer makes proposals of these. See Searcher for how it is asked.
//
// An answer is drawn by the stream for (seed, name, proposals made before it). While fewer results
// are known than its proposer starts with, each of the first proposals is an answer of its own, so
// that a sweep begins alike with any number of places. A proposer that fails costs nothing but its
// model: what it was to propose is drawn from the space, with the reason in the note.
//
// Functions of the space (sample_from) run in the thread of a question only when `where` names what
// they compute.
//
// Trials of earlier experiments are in the history from the start, and saved with it; those that a
// user adds join them when they are over. Outside the space they say nothing.
//
// points_to_evaluate come first. What they leave out is drawn; they must lie in the space, so that
// the model learns from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tune/search/history.h"
#include "tune/search/proposal.h"
#include "tune/search/proposer.h"
#include "tune/search/searcher.h"

namespace tune {

class ModelSearcher : public Searcher {
 public:
  // `name` as in a sweep: "gp".
  ModelSearcher(std::string name, std::shared_ptr<const Proposer> proposer)
      : name_(std::move(name)), proposer_(std::move(proposer)) {}

  void configure(const SearcherSetup& setup) override;
  bool takes_several_objectives() const override { return proposer_->takes_several_objectives(); }
  void set_num_samples(std::int64_t num_samples) override { num_samples_ = num_samples; }
  std::optional<std::uint64_t> total() const override;
  std::optional<Config> suggest(TrialNumber trial) override;
  void result(TrialNumber trial, const ResultView& result) override;
  void pause_trial(TrialNumber trial) override { history_.pause(trial); }
  void resume_trial(TrialNumber trial) override { history_.go_on(trial); }
  void end_trial(TrialNumber trial, TrialEnd end, const Reported* last) override;
  void end_added(const Config& config, TrialEnd end, const Reported& last) override;
  std::string save() const override;
  void restore(std::string_view state) override;

  std::optional<std::size_t> ready() const override;
  Question question(std::size_t count) const override;
  void answer(std::string_view answer) override;
  std::vector<Config> configurations(std::string_view answer) const override;
  const Proposal* newest_proposal() const override { return newest_ ? &*newest_ : nullptr; }

  const History& history() const { return history_; }

 private:
  struct Preset {  // one of points_to_evaluate, whole
    UnitPoint point;
    Config config;
  };
  // An answer, as a snapshot keeps it.
  struct Answer {
    std::vector<Proposal> proposals;
    Packed state;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.proposals, s.state);
    }
  };
  struct Asked;
  static ProposerAnswer proposed(const Asked& asked);
  static Answer answer_of(const Asked& asked);
  Answer read(std::string_view answer) const;

  void take_earlier(const SearcherSetup& setup);
  void take_presets(const SearcherSetup& setup);
  Preset whole(const Config& given, std::size_t index) const;

  std::string name_;
  std::shared_ptr<const Proposer> proposer_;
  std::shared_ptr<const Encoding> encoding_;  // shared with questions in other threads
  Objective objective_;
  std::vector<Preset> presets_;

  // State, saved by save()
  std::int64_t num_samples_ = 1;
  std::uint64_t next_ = 0;      // trial that will be suggested
  std::uint64_t proposed_ = 0;  // in all answers so far
  std::deque<Proposal> stock_;  // of these, those that have not begun
  std::string proposer_state_;
  History history_;

  std::optional<Proposal> newest_;
};

}  // namespace tune
