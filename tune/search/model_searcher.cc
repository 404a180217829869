#include "tune/search/model_searcher.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <stdexcept>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "core/wire.h"
#include "tune/search/presets.h"
#include "tune/search/tried_points.h"

namespace tune {

namespace {

constexpr const char* kModelState = "model_searcher";

Config with(const Config& given, Config config) {
  for (const auto& [path, value] : given.leaves()) config.set(path, *value);
  return config;
}

}  // namespace

// ---- Set up -------------------------------------------------------------------------------------

void ModelSearcher::configure(const SearcherSetup& setup) {
  if (proposer_->learns() && goals_of(setup.objective).empty()) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("searcher {}: it learns from the values of a metric, and none is given: "
                    "add metric and mode, as in metric: loss, mode: min",
                    name_));
  }
  encoding_ = std::make_shared<const Encoding>(setup.space, setup.where);
  if (encoding_->size() == 0) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("config: nothing in it is searched, so that searcher {} has nothing to "
                            "choose: add a domain such as uniform, or take basic_variant",
                            name_));
  }
  proposer_->check(*encoding_);
  objective_ = setup.objective;
  num_samples_ = setup.num_samples;
  history_ = History(objective_);
  take_earlier(setup);
  take_presets(setup);
}

void ModelSearcher::take_presets(const SearcherSetup& setup) {
  const std::vector<Config> given =
      checked_presets(setup.space, setup.points_to_evaluate, setup.num_samples);
  presets_.clear();
  for (std::size_t i = 0; i < given.size(); ++i) presets_.push_back(whole(given[i], i));
}

// Those outside the space, or that break a rule of where, say nothing that a model of it could
// learn.
void ModelSearcher::take_earlier(const SearcherSetup& setup) {
  for (const EarlierTrial& trial : setup.earlier) {
    Encoded found = encoding_->encode(trial.config);
    if (!found.complaint.empty() || !encoding_->holds(found.point)) continue;
    history_.add_earlier(std::move(found.point), trial.values, trial.end);
  }
}

// Values left out are drawn, anew while they break a rule of where.
ModelSearcher::Preset ModelSearcher::whole(const Config& given, std::size_t index) const {
  RandomStream random(objective_.seed, "points_to_evaluate", index);
  std::string complaint = "it breaks a rule of where";
  for (int i = 0; i < kMostWhereDraws; ++i) {
    Encoded found = encoding_->completed(given, random);
    if (!found.complaint.empty()) {
      complaint = std::move(found.complaint);
      break;
    }
    Config config = with(given, encoding_->decode(found.point));  // functions of what is given
    if (encoding_->holds(found.point)) return {std::move(found.point), std::move(config)};
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("points_to_evaluate/{}: {}: searcher {} learns only from configurations "
                          "in the space; widen it, or leave the point out",
                          index, complaint, name_));
}

// ---- Suggestions --------------------------------------------------------------------------------

std::optional<std::uint64_t> ModelSearcher::total() const {
  if (num_samples_ < 0) return std::nullopt;
  return static_cast<std::uint64_t>(num_samples_);
}

std::optional<std::size_t> ModelSearcher::ready() const {
  const std::size_t presets = presets_.size() - std::min<std::size_t>(presets_.size(), next_);
  return presets + stock_.size();
}

std::optional<Config> ModelSearcher::suggest(TrialNumber trial) {
  newest_.reset();
  if (const auto all = total(); all && trial.value >= *all) return std::nullopt;
  if (trial.value < presets_.size()) {
    const Preset& preset = presets_[trial.value];
    history_.add(trial, preset.point);
    next_ = trial.value + 1;
    return preset.config;
  }
  TUNE_CHECK(!stock_.empty());
  Config config = encoding_->decode(stock_.front().point);  // throws: nothing is taken
  newest_ = std::move(stock_.front());
  stock_.pop_front();
  history_.add(trial, newest_->point);
  next_ = trial.value + 1;
  return config;
}

void ModelSearcher::result(TrialNumber trial, const ResultView& result) {
  if (needs_merit(objective_)) {
    auto numbers =
        numbers_of(objective_, [&](std::string_view path) { return result.number(path); });
    if (numbers) history_.result(trial, result.iteration(), std::move(*numbers));
  } else if (!objective_.metric.empty()) {
    const std::optional<double> value = result.number(objective_.metric);
    if (value) history_.result(trial, result.iteration(), *value);
  }
}

void ModelSearcher::end_trial(TrialNumber trial, TrialEnd end, const Reported*) {
  history_.end(trial, end);
}

void ModelSearcher::end_added(const Config& config, TrialEnd end, const Reported& last) {
  Encoded found = encoding_->encode(config);
  if (goals_of(objective_).empty() || !found.complaint.empty()) return;
  auto numbers =
      numbers_of(objective_, [&](std::string_view path) { return ResultView(last).number(path); });
  if (!numbers) return;
  ValueAt value{last.iteration, numbers->front()};
  if (needs_merit(objective_)) value.numbers = std::move(*numbers);
  history_.add_ended(last.trial, std::move(found.point), value, end);
}

// ---- Questions and answers ----------------------------------------------------------------------

struct ModelSearcher::Asked {
  std::shared_ptr<const Proposer> proposer;
  std::shared_ptr<const Encoding> encoding;
  ProposerQuestion question;
  Objective objective;
  std::string name;
};

Searcher::Question ModelSearcher::question(std::size_t count) const {
  const std::size_t in_stock = count + stock_.size();
  const std::optional<std::uint64_t> all = total();
  auto asked =
      std::make_shared<Asked>(Asked{.proposer = proposer_,
                                    .encoding = encoding_,
                                    .question = {.known = history_,
                                                 .state = proposer_state_,
                                                 .proposed = proposed_,
                                                 .count = count,
                                                 .seed = objective_.seed,
                                                 .in_stock = in_stock,
                                                 .is_last = all && next_ + in_stock >= *all},
                                    .objective = objective_,
                                    .name = name_});
  for (const Proposal& waiting : stock_) asked->question.known.add_proposed(waiting.point);
  return [asked = std::move(asked)] { return encoded(answer_of(*asked)); };
}

namespace {

bool is_in_space(const Proposal& proposal, const Encoding& encoding) {
  return proposal.point.size() == encoding.size() &&
         std::ranges::all_of(proposal.point, [](double unit) {
           return unit == kInactive || (unit >= 0 && unit <= 1);
         });
}

// The reason why an answer is of no use; mostly empty.
std::string fault_of(const ProposerAnswer& answer, std::size_t count, const Encoding& encoding) {
  const std::vector<Proposal>& made = answer.proposals;
  if (made.size() != count) {
    return fmt::format("{} of {} proposals were made", made.size(), count);
  }
  const bool are_in_space =
      std::ranges::all_of(made, [&](const Proposal& one) { return is_in_space(one, encoding); });
  return are_in_space ? "" : "numbers failed: a proposal is not in the space";
}

// As the space draws, where a proposer failed.
std::vector<Proposal> drawn_instead(const ProposerQuestion& question, const Encoding& encoding,
                                    RandomStream& random, const std::string& why) {
  std::vector<std::uint64_t> known(question.known.fingerprints().begin(),
                                   question.known.fingerprints().end());
  std::sort(known.begin(), known.end());
  TriedPoints tried(known);
  std::vector<Proposal> proposals;
  while (proposals.size() < question.count) {
    DrawnPoint drawn = draw_untried(encoding, tried, random);
    tried.add(drawn.point);
    proposals.push_back(
        {.point = std::move(drawn.point), .origin = ProposalOrigin::kFallback, .note = why});
  }
  return proposals;
}

double in_own_direction(double value, Mode mode) {
  return mode == Mode::kMax ? value : -value;
}

// As the trial reported it: of several goals with a number for each.
ValueAt as_reported(const ValueAt& newest, const std::vector<Goal>& goals) {
  ValueAt value{newest.iteration, in_own_direction(newest.value, goals.front().mode)};
  for (std::size_t i = 0; goals.size() > 1 && i < goals.size(); ++i) {
    const bool is_known = i < newest.numbers.size();
    value.numbers.push_back(is_known ? in_own_direction(newest.numbers[i], goals[i].mode)
                                     : std::nan(""));
  }
  return value;
}

// The neighbours as they were known then: later their values are others.
void add_neighbour_values(std::vector<Proposal>& proposals, const History& known,
                          const std::vector<Goal>& goals) {
  for (Proposal& proposal : proposals) {
    for (const TrialNumber neighbour : proposal.neighbours) {
      const KnownTrial* trial = known.find(neighbour);
      const bool has_value = trial != nullptr && trial->newest;
      proposal.neighbour_values.push_back(
          as_reported(has_value ? *trial->newest : ValueAt{}, goals));
    }
  }
}

// So many first proposals of the question are part of what the sweep begins with.
std::size_t begun_with(const ProposerQuestion& question, std::size_t start_up) {
  if (question.proposed >= start_up) return 0;
  const auto has_result = [](const KnownTrial& trial) { return trial.newest.has_value(); };
  const auto results = std::ranges::count_if(question.known.trials(), has_result);
  if (static_cast<std::size_t>(results) >= start_up) return 0;
  return std::min<std::size_t>(question.count, start_up - question.proposed);
}

}  // namespace

// What a sweep begins with is asked for one by one, so that it is the same with any number of
// places. Throws what the proposer throws, or std::runtime_error with the fault of an answer.
ProposerAnswer ModelSearcher::proposed(const Asked& asked) {
  const auto& [proposer, encoding, whole, objective, name] = asked;
  const auto ask = [&](const ProposerQuestion& question) {
    RandomStream random(objective.seed, name, question.proposed);
    return proposer->propose(question, *encoding, random);
  };
  const std::size_t singly = whole.count > 1 ? begun_with(whole, proposer->start_up()) : 0;
  if (singly == 0) return ask(whole);
  ProposerAnswer all{{}, whole.state};
  ProposerQuestion question = whole;
  while (all.proposals.size() < whole.count) {
    question.count = all.proposals.size() < singly ? 1 : whole.count - singly;
    ProposerAnswer answer = ask(question);
    const std::string fault = fault_of(answer, question.count, *encoding);
    if (!fault.empty()) throw std::runtime_error(fault);
    for (Proposal& proposal : answer.proposals) {
      question.known.add_proposed(proposal.point);
      all.proposals.push_back(std::move(proposal));
    }
    all.state = question.state = std::move(answer.state);
    question.proposed += question.count;
  }
  return all;
}

ModelSearcher::Answer ModelSearcher::answer_of(const Asked& asked) {
  const auto& [proposer, encoding, question, objective, name] = asked;
  std::string why;
  try {
    ProposerAnswer answer = proposed(asked);
    why = fault_of(answer, question.count, *encoding);
    if (why.empty()) {
      add_neighbour_values(answer.proposals, question.known, goals_of(objective));
      return {std::move(answer.proposals), {std::move(answer.state)}};
    }
  } catch (const std::exception& error) {
    why = error.what();
  }
  RandomStream random(objective.seed, name, question.proposed);
  return {drawn_instead(question, *encoding, random, why), {question.state}};
}

ModelSearcher::Answer ModelSearcher::read(std::string_view answer) const {
  auto taken = decoded<Answer>(answer);
  for (const Proposal& proposal : taken.proposals) {
    if (is_in_space(proposal, *encoding_)) continue;
    throw Error(ErrorCode::kProtocol,
                fmt::format("searcher {}: an answer has a point that is not in a space of {} "
                            "parameters",
                            name_, encoding_->size()));
  }
  return taken;
}

std::vector<Config> ModelSearcher::configurations(std::string_view answer) const {
  std::vector<Config> configs;
  for (const Proposal& proposal : read(answer).proposals) {
    configs.push_back(encoding_->decode(proposal.point));
  }
  return configs;
}

void ModelSearcher::answer(std::string_view answer) {
  Answer taken = read(answer);
  proposed_ += taken.proposals.size();
  for (Proposal& proposal : taken.proposals) stock_.push_back(std::move(proposal));
  proposer_state_ = std::move(taken.state.bytes);
}

// ---- State --------------------------------------------------------------------------------------

std::string ModelSearcher::save() const {
  PackWriter out;
  out.text(kModelState);
  out.text(name_);
  encode(out, num_samples_);
  encode(out, next_);
  encode(out, proposed_);
  encode(out, std::vector<Proposal>(stock_.begin(), stock_.end()));
  out.binary(proposer_state_);
  out.binary(history_.save());
  return out.take();
}

void ModelSearcher::restore(std::string_view state) {
  PackReader in(state);
  const std::string_view kind = in.text();
  const std::string_view name = kind == kModelState ? in.text() : kind;
  if (name != name_) {
    throw Error(ErrorCode::kProtocol,
                fmt::format("restoring the searcher: the state is of '{}', not of '{}': resume "
                            "with the searcher that the experiment began with",
                            name, name_));
  }
  std::int64_t num_samples = 0;
  std::uint64_t next = 0;
  std::uint64_t proposed = 0;
  std::vector<Proposal> stock;
  decode(in, num_samples);
  decode(in, next);
  decode(in, proposed);
  decode(in, stock);
  const std::string_view proposer_state = in.binary();
  History history(objective_);
  history.restore(in.binary(), encoding_->size());
  in.expect_end();
  if (!std::ranges::all_of(stock,
                           [&](const Proposal& one) { return is_in_space(one, *encoding_); })) {
    throw Error(ErrorCode::kProtocol, "restoring the searcher: a proposal is not in the space");
  }
  num_samples_ = num_samples;
  next_ = next;
  proposed_ = proposed;
  stock_.assign(std::make_move_iterator(stock.begin()), std::make_move_iterator(stock.end()));
  proposer_state_ = proposer_state;
  history_ = std::move(history);
  newest_.reset();
}

}  // namespace tune
