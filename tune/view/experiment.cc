#include "tune/view/experiment.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "tune/results/analysis.h"
#include "tune/results/result_lines.h"
#include "tune/results/trial_folders.h"

namespace tune::view {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kEventSlice = 1u << 20;
// Read in one look at what is new: some 50 ms of work, between which questions are answered.
constexpr std::size_t kLookBytes = 8u << 20;
constexpr std::size_t kMaxProblems = 20;
// A trial's results may reach its file a little after the event of its end.
constexpr std::chrono::seconds kHotAfterEnd{5};
constexpr std::chrono::seconds kStateEvery{1};
// Before a trial whose files could not be read is read again; doubled each time.
constexpr Experiment::Clock::duration kFirstPause = std::chrono::seconds(2);
constexpr Experiment::Clock::duration kLongestPause = std::chrono::minutes(5);
constexpr int kTrialsBetweenLooks = 16;  // at the clock

}  // namespace

Experiment::Experiment(ExperimentHead head, std::uint64_t& change)
    : head_(std::move(head)), counter_(change), trials_(head_.metric) {
  refresh_state(Clock::now());
}

double Experiment::loaded_share() const {
  if (is_loaded_) return 1;
  if (!are_events_read_) return 0;
  return numbers_.empty() ? 0 : static_cast<double>(next_) / static_cast<double>(numbers_.size());
}

bool Experiment::load_some(Clock::time_point until) {
  now_ = Clock::now();
  if (is_loaded_) return true;
  if (!std::exchange(is_listed_, true)) list_trials();
  while (!are_events_read_) {
    are_events_read_ = !read_events(kEventSlice);
    if (Clock::now() > until) return false;
  }
  for (int read = 1; next_ < numbers_.size(); ++read) {
    add_trial(numbers_[next_++]);
    if (read % kTrialsBetweenLooks == 0 && Clock::now() > until) return false;
  }
  if (history_.lines() == 0) statuses_without_events();
  is_loaded_ = true;
  numbers_ = {};
  mark();
  change_ = ++counter_;
  is_changed_ = false;
  return true;
}

void Experiment::list_trials() {
  TrialFolders found = list_trial_folders(head_.directory);
  if (id_prefix_.empty()) id_prefix_ = found.prefix;
  numbers_ = std::move(found.numbers);
  if (found.error) {
    complain(fmt::format("reading {}: {}", head_.directory.string(), found.error.message()));
  }
}

fs::path Experiment::trial_directory(std::size_t row) const {
  return head_.directory / trial_id(row);
}

std::string Experiment::trial_id(std::size_t row) const {
  return fmt::format("{}{:05}", id_prefix_, trials_.row(row).number);
}

std::uint64_t Experiment::mark() {
  is_changed_ = true;
  return counter_ + 1;
}

void Experiment::complain(const std::string& what) {
  if (problems_.size() < kMaxProblems &&
      std::find(problems_.begin(), problems_.end(), what) == problems_.end()) {
    problems_.push_back(what);
  }
}

// ---- Events -------------------------------------------------------------------------------------

// True when there is more to read.
bool Experiment::read_events(std::size_t budget) try {
  const TailVisitor visit{.begun_anew = [this] { history_.clear(); },
                          .line = [this](std::string_view line) { take_event(line); }};
  const TailNews news = read_tail(head_.directory / "events.jsonl", events_, visit, budget);
  if (news == TailNews::kBegunAnew && is_loaded_) {
    mark();
    for (std::size_t row = 0; row < trials_.size(); ++row) apply_story(trials_.row(row).number);
  }
  return events_.more;
} catch (const Error& error) {
  complain(error.what());
  return false;
}

void Experiment::take_event(std::string_view line) try {
  const History::Told told = history_.add(line, "events.jsonl");
  if (!is_loaded_) return;
  mark();
  if (!told.trial) return;
  const auto known = trials_.find(*told.trial);
  const std::size_t row = known ? *known : add_trial(*told.trial);
  if (known && told.replaced) read_config(row);
  apply_story(*told.trial);
} catch (const Error& error) {
  complain(error.what());
}

void Experiment::apply_story(std::uint32_t number) {
  const auto row = trials_.find(number);
  const TrialStory* story = history_.story(number);
  if (!row || story == nullptr) return;
  TrialRow& trial = trials_.touch(*row, mark());
  trial.status = story->status;
  trial.attempts = story->attempts;
  trial.failures = story->failures;
  trial.started = story->started;
  trial.ended = story->ended;
  const bool runs = story->status == TrialStatus::kRunning;
  following_[*row].hot_until = runs ? Clock::time_point::max() : now_ + kHotAfterEnd;
  if (runs || is_loaded_) hot_[*row] = true;
}

// ---- Trials -------------------------------------------------------------------------------------

std::size_t Experiment::add_trial(std::uint32_t number) {
  const std::size_t row = trials_.add(number, mark());
  if (row >= following_.size()) following_.resize(row + 1);
  apply_story(number);
  read_config(row);
  read_results(row);
  const bool is_open = history_.lines() == 0 || trials_.row(row).status == TrialStatus::kPending;
  if (is_open && is_live()) {
    hot_[row] = true;
    following_[row].hot_until = now_ + kHotAfterEnd;
  }
  return row;
}

void Experiment::read_config(std::size_t row) try {
  const fs::path file = trial_directory(row) / "params.json";
  trials_.set_config(row, config_from_json(read_file(file), file.string()), mark());
} catch (const Error& error) {
  put_off(row, error.what());
}

bool Experiment::read_results(std::size_t row, std::size_t budget) try {
  const fs::path file = trial_directory(row) / "result.json";
  const std::string where = "result.json of " + trial_id(row);
  const TailVisitor visit{
      .begun_anew = [&] { trials_.clear_results(row, mark()); },
      .line = [&](std::string_view line) { trials_.add_result(row, line, where, mark()); }};
  return read_tail(file, following_[row].results, visit, budget) != TailNews::kNone;
} catch (const Error& error) {
  put_off(row, error.what());
  return false;
}

// A disk that fails, or a limit of open files, may be over soon; a damaged file stays as it is.
void Experiment::put_off(std::size_t row, const std::string& why) {
  Following& following = following_[row];
  following.pause = std::clamp(2 * following.pause, kFirstPause, kLongestPause);
  following.again_at = now_ + following.pause;
  hot_[row] = true;
  complain(why);
}

void Experiment::read_anew(std::size_t row) {
  Following& following = following_[row];
  if (now_ < following.again_at) return;
  const Clock::time_point put_off_at = following.again_at;
  following.results = {};
  trials_.clear_results(row, mark());
  read_config(row);
  read_results(row);
  if (following.again_at == put_off_at) following.pause = {};
}

// Folders of builds that wrote no events.jsonl.
void Experiment::statuses_without_events() try {
  const Analysis analysis = Analysis::load(head_.directory);
  for (const TrialSummary& trial : analysis.trials()) {
    const auto number = number_of_id(trial.id);
    const auto row = number ? trials_.find(*number) : std::nullopt;
    if (row) trials_.touch(*row, mark()).status = trial.status;
  }
} catch (const std::exception& error) {  // of the file system as well
  complain(error.what());
}

// The folder of a trial may be there before any event names it.
void Experiment::look_for_new_trials() {
  if (id_prefix_.empty()) {
    list_trials();
    for (const std::uint32_t number : std::exchange(numbers_, {})) add_trial(number);
    return;
  }
  while (true) {
    const auto next = trials_.size() == 0 ? 0 : trials_.row(trials_.size() - 1).number + 1;
    std::error_code error;
    const fs::path folder = head_.directory / fmt::format("{}{:05}", id_prefix_, next);
    if (trials_.find(next) || !fs::exists(folder / "params.json", error)) return;
    add_trial(next);
  }
}

// ---- Following ----------------------------------------------------------------------------------

void Experiment::refresh_state(Clock::time_point now) {
  if (!state_.empty() && now - state_at_ < kStateEvery) return;
  state_at_ = now;
  std::string state = state_of(head_.directory);
  if (state == state_) return;
  state_ = std::move(state);
  if (is_loaded_) mark();
}

bool Experiment::poll(Clock::time_point now) {
  if (!is_loaded_) return false;
  now_ = now;
  is_changed_ = false;
  refresh_state(now);
  is_behind_ = read_events(kLookBytes);
  if (is_live()) look_for_new_trials();
  read_hot_trials(now);
  if (is_changed_) change_ = ++counter_;
  return is_changed_;
}

// In turn, from where the last look has ended.
void Experiment::read_hot_trials(Clock::time_point now) {
  std::size_t left = kLookBytes;
  for (std::size_t count = hot_.size(); count > 0; --count) {
    if (left == 0) {
      is_behind_ = true;
      return;
    }
    auto at = hot_.lower_bound(next_hot_);
    if (at == hot_.end()) at = hot_.begin();
    const std::size_t row = at->first;
    const Following& following = following_[row];
    const std::uint64_t before = following.results.offset;
    following.pause > Clock::duration{} ? read_anew(row) : void(read_results(row, left));
    const std::uint64_t after = following.results.offset;
    left -= std::min<std::uint64_t>(left, after > before ? after - before : 0);
    is_behind_ = is_behind_ || following.results.more;
    const bool is_over = following.hot_until <= now && following.pause == Clock::duration{} &&
                         !following.results.more;
    if (is_over) hot_.erase(at);
    next_hot_ = row + 1;
  }
}

// ---- The best -----------------------------------------------------------------------------------

double Experiment::value_of(std::size_t row, By by) const {
  const MetricColumn* metric = trials_.metric();
  if (metric == nullptr) return std::numeric_limits<double>::quiet_NaN();
  if (by == By::kLast) return metric->last[row];
  return head_.mode == Mode::kMax ? metric->greatest[row] : metric->least[row];
}

std::optional<std::size_t> Experiment::best_row(By by) const {
  std::optional<std::size_t> best;
  for (std::size_t row = 0; row < trials_.size(); ++row) {
    const double value = value_of(row, by);
    if (!std::isfinite(value)) continue;
    const double held = best ? value_of(*best, by) : value;
    if (!best || (head_.mode == Mode::kMax ? value > held : value < held)) best = row;
  }
  return best;
}

}  // namespace tune::view
