#include "tune/export/mlflow.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "core/json.h"
#include "core/platform/files.h"
#include "core/random.h"
#include "tune/export/curves.h"
#include "tune/results/event_lines.h"
#include "tune/results/result_lines.h"
#include "tune/results/result_scan.h"

namespace tune {

namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{60'000};
constexpr int kRunsOfPage = 100;

// Tags of runs. The first two are MLflow's own.
constexpr const char* kParentTag = "mlflow.parentRunId";
constexpr const char* kNoteTag = "mlflow.note.content";
constexpr const char* kExperimentTag = "tune.experiment";
constexpr const char* kTrialTag = "tune.trial_id";
constexpr const char* kSentTag = "tune.sent";
constexpr const char* kConfigTag = "tune.config_hash";
constexpr const char* kToldTag = "tune.state";

std::int64_t time_ms(double seconds) {
  return static_cast<std::int64_t>(seconds * 1000);
}

std::int64_t now_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(since).count();
}

std::string text_of(const Value& map, std::string_view path) {
  const Value* found = map.find(path);
  return found != nullptr && found->is_string() ? found->string() : std::string();
}

const Value::List& list_of(const Value& map, std::string_view path) {
  static const Value::List none;
  const Value* found = map.find(path);
  return found != nullptr && found->is_list() ? found->list() : none;
}

std::string tag_of(const Value& run, std::string_view key) {
  for (const Value& tag : list_of(run, "data/tags")) {
    if (text_of(tag, "key") == key) return text_of(tag, "value");
  }
  return {};
}

Value tags_of(std::initializer_list<std::pair<const char*, std::string>> pairs) {
  Value::List tags;
  for (const auto& [key, value] : pairs) tags.push_back(Value{{"key", key}, {"value", value}});
  return Value::make_list(std::move(tags));
}

// Refusals of calls that are not about one trial.
void expect_good(const MlflowAnswer& answer, const std::string& doing) {
  if (answer.is_good()) return;
  throw Error(ErrorCode::kIo, fmt::format("{}: MLflow refuses: {}", doing, answer.refusal));
}

// The time of the experiment's first event, which no resume changes. Nothing: it has not begun.
std::optional<double> begin_of(const fs::path& experiment) {
  std::ifstream events(experiment / "events.jsonl");
  std::string line;
  if (!std::getline(events, line) || events.eof()) return std::nullopt;
  return event_from_line(line, "events.jsonl").time;
}

std::string hash_word(std::uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

// "12 9f3a...": the tag of what was sent.
std::pair<std::uint64_t, std::uint64_t> sent_of(const std::string& tag) {
  std::pair<std::uint64_t, std::uint64_t> sent{0, 0};
  const char* end = tag.data() + tag.size();
  const auto [stop, error] = std::from_chars(tag.data(), end, sent.first);
  if (error != std::errc() || stop == end) return {0, 0};
  const auto [last, other] = std::from_chars(stop + 1, end, sent.second, 16);
  return other == std::errc() && last == end ? sent : std::pair<std::uint64_t, std::uint64_t>{};
}

constexpr std::uint64_t kNoLines = 0xcbf29ce484222325ULL;

const char* status_there(const FollowedTrial& trial) {
  switch (trial.story.status) {
    case TrialStatus::kRunning:
      return "RUNNING";
    case TrialStatus::kTerminated:
      return "FINISHED";
    case TrialStatus::kError:
      return "FAILED";
    case TrialStatus::kPending:
    case TrialStatus::kPaused:
      break;
  }
  return "SCHEDULED";
}

}  // namespace

MlflowExport::MlflowExport(const fs::path& experiment, MlflowServer server, MlflowOptions options)
    : experiment_(experiment),
      head_(checked_head(experiment)),
      server_(std::move(server)),
      options_(std::move(options)) {}

// On the folder itself: nothing stays behind.
bool MlflowExport::has_target() {
  if (lock_.is_open()) return true;
  FileDescriptor folder(open(experiment_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) throw file_error("opening", experiment_, errno);
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  lock_ = std::move(folder);
  return true;
}

void MlflowExport::write_news(const std::function<bool()>& ends) {
  if (!has_target() || SteadyClock::now() < next_try_) return;
  try {
    if (!follower_) {
      if (!find_runs()) return;
      follower_.emplace(experiment_);
      told_problems_ = 0;
    }
    follower_->poll(*this, ends);
    trouble_.clear();
    pause_ = milliseconds(0);
  } catch (const MlflowTrouble& trouble) {
    on_trouble(trouble);
  }
}

// An answer that was lost may have been carried out: the runs that are there are looked for again.
void MlflowExport::on_trouble(const Error& error) {
  if (trouble_.empty()) {
    problems_.push_back(fmt::format("{}; it is asked again until the end", error.what()));
  }
  trouble_ = error.what();
  follower_.reset();
  parent_ = {};
  runs_.clear();
  batch_ = {};
  batch_iteration_ = 0;
  pause_ = pause_.count() == 0 ? options_.first_pause : std::min(2 * pause_, kLongestPause);
  next_try_ = SteadyClock::now() + pause_;
}

std::vector<std::string> MlflowExport::take_problems() {
  if (follower_) {
    const std::vector<std::string>& all = follower_->problems();
    std::copy(all.begin() + static_cast<std::ptrdiff_t>(told_problems_), all.end(),
              std::back_inserter(problems_));
    told_problems_ = all.size();
  }
  return std::exchange(problems_, {});
}

void MlflowExport::finish() {
  if (!has_target()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("telling MLflow of {}: another process does, as a sweep with loggers: "
                            "[mlflow]: wait for its end",
                            experiment_.string()));
  }
  if (!follower_) {
    next_try_ = {};
    write_news([] { return false; });
  }
  if (!trouble_.empty()) throw Error(ErrorCode::kIo, trouble_);
  if (!follower_) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("telling MLflow of {}: it has not begun", experiment_.string()));
  }
  const Outcome ended = outcome();
  if (ended.status == "RUNNING") return;
  for (auto& [number, run] : runs_) {
    if (run.status == "RUNNING") set_status(run, "KILLED", ended.time);
  }
  tell_best();
  set_status(parent_, ended.status, ended.time);
}

// ---- Runs that are there ------------------------------------------------------------------------

// False: the experiment has not begun.
bool MlflowExport::find_runs() {
  const std::optional<double> begin = begin_of(experiment_);
  if (!begin) return false;
  mlflow_experiment_ = find_experiment();
  find_parent(hash_word(hash64(fmt::format("{} {:.3f}", head_.name, *begin))));
  runs_.clear();
  find_children();
  if (outcome().status == "RUNNING") set_status(parent_, "RUNNING", 0);  // it may be resumed
  return true;
}

std::string MlflowExport::find_experiment() {
  const std::string& given = server_.address().experiment;
  const std::string name = given.empty() ? head_.name : given;
  const std::string query = "experiment_name=" + url_path(name);
  MlflowAnswer found = server_.get("experiments/get-by-name", query);
  if (found.code == "RESOURCE_DOES_NOT_EXIST") {
    const MlflowAnswer made = server_.post("experiments/create", to_json(Value{{"name", name}}));
    if (made.is_good()) return text_of(made.body, "experiment_id");
    if (made.code == "RESOURCE_ALREADY_EXISTS") {  // meanwhile, by another one
      found = server_.get("experiments/get-by-name", query);
    } else {
      found = made;
    }
  }
  expect_good(found, fmt::format("looking for the experiment {}", name));
  if (text_of(found.body, "experiment/lifecycle_stage") == "deleted") {
    throw MlflowTrouble(
        fmt::format("the experiment {} is deleted on the MLflow server: restore "
                    "it, or name another one in MLFLOW_EXPERIMENT_NAME",
                    name));
  }
  return text_of(found.body, "experiment/experiment_id");
}

void MlflowExport::find_parent(const std::string& mark) {
  const Value query{{"experiment_ids", list({mlflow_experiment_})},
                    {"filter", fmt::format("tags.`{}` = '{}'", kExperimentTag, mark)},
                    {"max_results", 1},
                    {"order_by", list({"attributes.start_time ASC"})}};
  const MlflowAnswer found = server_.post("runs/search", to_json(query));
  expect_good(found, "looking for the run of the experiment");
  const Value::List& runs = list_of(found.body, "runs");
  if (!runs.empty()) {
    parent_ = {.id = text_of(runs.front(), "info/run_id"),
               .status = text_of(runs.front(), "info/status")};
    return;
  }
  Value tags = tags_of({{kExperimentTag, mark},
                        {kNoteTag, "A sweep of tune: its trials are the runs below this one."},
                        {"tune.folder", fs::absolute(experiment_).string()},
                        {"tune.trainable", head_.trainable},
                        {"tune.metric", head_.metric},
                        {"tune.mode", head_.mode == Mode::kMin ? "min" : "max"},
                        {"tune.scheduler", head_.scheduler},
                        {"tune.searcher", head_.searcher}});
  std::erase_if(tags.list(), [](const Value& tag) { return text_of(tag, "value").empty(); });
  const Value wanted{{"experiment_id", mlflow_experiment_},
                     {"run_name", head_.folder.empty() ? head_.name : head_.folder},
                     {"start_time", time_ms(begin_of(experiment_).value_or(0))},
                     {"tags", std::move(tags)}};
  const MlflowAnswer made = server_.post("runs/create", to_json(wanted));
  expect_good(made, "making the run of the experiment");
  parent_ = {.id = text_of(made.body, "run/info/run_id"), .status = "RUNNING"};
}

void MlflowExport::find_children() {
  std::string page;
  do {
    Value query{{"experiment_ids", list({mlflow_experiment_})},
                {"filter", fmt::format("tags.`{}` = '{}'", kParentTag, parent_.id)},
                {"max_results", kRunsOfPage}};
    if (!page.empty()) query.set("page_token", page);
    const MlflowAnswer found = server_.post("runs/search", to_json(query));
    expect_good(found, "looking for the runs of trials");
    for (const Value& there : list_of(found.body, "runs")) {
      const auto number = number_of_id(tag_of(there, kTrialTag));
      if (!number) continue;
      Run run{.id = text_of(there, "info/run_id")};
      std::tie(run.sent, run.sent_hash) = sent_of(tag_of(there, kSentTag));
      run.status = text_of(there, "info/status");
      run.told = tag_of(there, kToldTag);
      run.config_mark = tag_of(there, kConfigTag);
      runs_.emplace(*number, std::move(run));
    }
    page = text_of(found.body, "next_page_token");
  } while (!page.empty());
}

// ---- Trials -------------------------------------------------------------------------------------

MlflowExport::Run& MlflowExport::run_of(const FollowedTrial& trial) {
  Run& run = runs_[trial.number];
  if (run.id.empty()) make_run(trial, run);
  if (run.attempts_seen < trial.story.attempts || run.config_mark.empty()) {
    run.attempts_seen = trial.story.attempts;  // a scheduler may have replaced its configuration
    tell_config(trial, run);
  }
  return run;
}

void MlflowExport::make_run(const FollowedTrial& trial, Run& run) {
  const double started = trial.story.started;
  const Value wanted{{"experiment_id", mlflow_experiment_},
                     {"run_name", trial.id},
                     {"start_time", started > 0 ? time_ms(started) : now_ms()},
                     {"tags", tags_of({{kParentTag, parent_.id}, {kTrialTag, trial.id}})}};
  const MlflowAnswer made = server_.post("runs/create", to_json(wanted));
  expect_good(made, fmt::format("making the run of trial {}", trial.id));
  run.id = text_of(made.body, "run/info/run_id");
  run.status = "RUNNING";
}

// Params cannot be changed there: they are the first configuration, and a newer one is a tag.
void MlflowExport::tell_config(const FollowedTrial& trial, Run& run) {
  const std::string text = read_if_there(trial.directory / "params.json");
  if (text.empty()) return;
  const std::string mark = hash_word(hash64(text));
  if (run.config_mark == mark) return;
  const Config config = config_from_json(text, trial.id + "/params.json");
  if (run.config_mark.empty()) {
    for (const auto& [path, value] : config.leaves()) {
      batch_.param(path, value->is_string() ? value->string() : value->dump());
      if (batch_.is_full()) send(run);
    }
  } else {
    batch_.tag("tune.config", config.dump());
  }
  batch_.tag(kConfigTag, mark);
  run.config_mark = mark;
}

void MlflowExport::result(const FollowedTrial& trial, std::string_view line,
                          const std::string& where) {
  Run& run = run_of(trial);
  run.read_hash = hash64(line, trial.iterations == 1 ? kNoLines : run.read_hash);
  if (trial.iterations == run.sent) run.is_redone = run.read_hash != run.sent_hash;
  if (trial.iterations <= run.sent || run.is_refused) return;
  add_metrics(line, where, trial.iterations, run);
  batch_iteration_ = trial.iterations;
  batch_hash_ = run.read_hash;
}

void MlflowExport::add_metrics(std::string_view line, const std::string& where,
                               std::uint64_t iteration, Run& run) {
  double time = 0;
  numbers_.clear();
  scan_numbers(line, where, [&](std::string_view path, double value) {
    if (path == kTimestampField) time = value;
    if (makes_a_curve(path)) numbers_.emplace_back(path, value);
  });
  for (const auto& [path, value] : numbers_) {
    batch_.metric(path, value, time_ms(time), iteration);
    if (batch_.is_full()) send(run);
  }
}

// The part of a result that was sent without its end is sent again if this is interrupted; MLflow
// keeps equal values of a step once.
void MlflowExport::send(Run& run) {
  if (batch_iteration_ > 0) {
    batch_.tag(kSentTag, fmt::format("{} {:016x}", batch_iteration_, batch_hash_));
  }
  if (batch_.is_empty()) return;
  if (run.is_refused) {
    batch_ = {};
  } else {
    accept(server_.post("runs/log-batch", batch_.take(run.id)), run);
  }
  if (batch_iteration_ > 0) {
    run.sent = std::exchange(batch_iteration_, 0);
    run.sent_hash = batch_hash_;
  }
}

void MlflowExport::accept(const MlflowAnswer& answer, Run& run) {
  if (answer.is_good() || std::exchange(run.is_refused, true)) return;
  if (problems_.size() >= kMaxProblems) return;
  problems_.push_back(
      fmt::format("MLflow refuses what belongs to its run {}: {}", run.id, answer.refusal));
}

// MLflow keeps both values of a step that was done again; the later one counts as its last.
void MlflowExport::send_again(const FollowedTrial& trial, Run& run) {
  std::uint64_t hash = kNoLines;
  for_each_line(trial.directory / "result.json", [&](std::string_view line, std::size_t number) {
    if (number > trial.iterations) return;
    hash = hash64(line, hash);
    add_metrics(line, trial.id + "/result.json", number, run);
    batch_iteration_ = number;
    batch_hash_ = hash;
  });
  send(run);
  run.is_redone = false;
}

void MlflowExport::trial_is_read(const FollowedTrial& trial) {
  const TrialStory& story = trial.story;
  if (story.started == 0 && trial.iterations == 0 && !is_over(story.status)) return;
  Run& run = run_of(trial);
  const bool is_shorter = is_over(story.status) && trial.iterations < run.sent;
  if (run.is_redone || is_shorter) send_again(trial, run);
  tell_state(trial, run);
}

void MlflowExport::tell_state(const FollowedTrial& trial, Run& run) {
  const TrialStory& story = trial.story;
  const std::string told = fmt::format("{} {} {} {}", status_name(story.status), story.attempts,
                                       story.failures, story.rung);
  if (told != run.told) {
    batch_.tag("tune.status", status_name(story.status));
    batch_.tag("tune.attempts", std::to_string(story.attempts));
    if (story.rung > 0) batch_.tag("tune.rung", std::to_string(story.rung));
    if (!story.reason.empty()) batch_.tag("tune.reason", story.reason);
    batch_.tag(kToldTag, told);
    run.told = told;
  }
  send(run);
  set_status(run, status_there(trial), story.ended);
}

void MlflowExport::set_status(Run& run, const std::string& status, double ended) {
  if (run.status == status || run.is_refused) return;
  Value wanted{{"run_id", run.id}, {"status", status}};
  if (ended > 0) wanted.set("end_time", time_ms(ended));
  accept(server_.post("runs/update", to_json(wanted)), run);
  run.status = status;
}

// ---- The experiment -----------------------------------------------------------------------------

MlflowExport::Outcome MlflowExport::outcome() const {
  std::string how;
  double time = 0;
  for_each_event(experiment_, {"driver_started", "experiment_ended"}, [&](const Value& event) {
    how = event_text(event, "how");
    time = event_number(event, "time");
  });
  if (how == "finished") return {"FINISHED", time};
  if (how == "failed") return {"FAILED", time};
  if (how.empty() && state_of(experiment_) == "running") return {"RUNNING", 0};
  return {"KILLED", how.empty() ? 0 : time};
}

}  // namespace tune
