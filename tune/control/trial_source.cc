#include "tune/control/trial_source.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

void TrialSource::serve(const DriverStarted& driver) {
  state_.asking.forget();
  take_num_samples(driver.num_samples);
  state_.exhausted = false;
}

// A resume may have changed it. Else what a user has ordered stands, though the driver may not have
// lived to write it into the sweep's description.
void TrialSource::take_num_samples(std::int64_t of_driver) {
  if (of_driver != state_.driver.num_samples) state_.num_samples = of_driver;
  state_.searcher.set_num_samples(state_.num_samples);
}

bool TrialSource::has_more() const {
  if (state_.exhausted) return false;
  const std::optional<std::uint64_t> total = state_.searcher.total();
  return !total || state_.book.next_number().value < *total;
}

bool TrialSource::draw() {
  if (state_.exhausted) return false;
  const TrialNumber number = state_.book.next_number();
  std::optional<Config> config;
  try {
    config = state_.searcher.suggest(number);
  } catch (const std::exception& error) {  // a function of the user's search space threw
    state_.course.fail(
        fmt::format("drawing the configuration of trial {}: {}", number.value, error.what()));
  }
  if (!config) {
    state_.exhausted = true;
    return false;
  }
  Packed packed = pack(*config);
  Milestone until = state_.verdicts.begin(number, packed);
  const Trial& trial = state_.book.add(std::move(packed), std::move(until));
  if (const Proposal* proposal = state_.searcher.newest_proposal()) tell(trial, *proposal);
  return true;
}

// The reason why there was no model is said once.
void TrialSource::tell(const Trial& trial, const Proposal& proposal) {
  state_.out.tell(TrialProposed{trial, proposal});
  const bool has_note = proposal.origin == ProposalOrigin::kModel && !proposal.note.empty();
  if (has_note) state_.course.warn(proposal.note);
  if (proposal.origin != ProposalOrigin::kFallback) return;
  state_.course.warn(fmt::format(
      "configurations are drawn at random for now, as there is no model: {}", proposal.note));
}

Trial& TrialSource::add(Packed config) {
  const TrialNumber number = state_.book.next_number();
  Milestone until = state_.verdicts.begin(number, config);
  Trial& trial = state_.book.add(std::move(config), std::move(until));
  trial.is_added = true;
  state_.searcher.skip(number);
  return trial;
}

void TrialSource::ask(std::uint64_t free_places) {
  const std::optional<std::size_t> ready = state_.searcher.ready();
  if (!ready || state_.asking.open() || !state_.course.is_running() || !has_more()) return;
  const std::uint32_t stock = state_.asking.stock(state_.book.running().size() + free_places);
  std::uint64_t wanted = free_places + stock;
  if (const auto total = state_.searcher.total()) {
    wanted = std::min(wanted, *total - state_.book.next_number().value);
  }
  if (wanted <= *ready) return;
  state_.asking.ask(wanted - *ready, state_.driver.asks_for_few ? stock : Asking::kMostAtOnce);
}

std::optional<Asking::Question> TrialSource::question() const {
  return state_.course.is_running() ? state_.asking.open() : std::nullopt;
}

bool TrialSource::answer(const Proposed& event) {
  if (!state_.asking.answered(event.question, event.took)) return false;
  try {
    if (!event.error.empty()) throw Error(ErrorCode::kBadInput, event.error);
    state_.searcher.answer(event.answer.bytes);
  } catch (const std::exception& error) {
    state_.course.fail(fmt::format("asking the searcher for configurations: {}", error.what()));
    return false;
  }
  if (state_.searcher.ready().value_or(0) == 0) state_.exhausted = true;
  return true;
}

}  // namespace tune
