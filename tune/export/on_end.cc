#include "tune/export/on_end.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/child.h"
#include "core/platform/http.h"
#include "core/platform/process.h"
#include "core/platform/side_output.h"
#include "tune/results/analysis.h"
#include "tune/results/result_lines.h"

namespace tune {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTermPatience{2000};
constexpr int kTries = 3;
constexpr milliseconds kBetweenTries{1000};  // doubled each time
constexpr milliseconds kWebhookLimit{10'000};

std::string words_of(const EndedRun& run) {
  std::string text = fmt::format("{} is {}", run.name, run.status);
  if (run.best) text += fmt::format(", best {} {:g}", run.metric, run.best->value);
  return text;
}

void run_command(const OnEnd& wanted, const EndedRun& run) {
  SpawnOptions options;
  options.command = wanted.command;
  options.environment = end_environment(run);
  options.output = STDERR_FILENO;  // stdout carries the best configuration alone
  options.new_session = true;
  Child child(spawn(options));
  if (!child.has_ended(kEndCommandLimit)) {
    child.signal_group(SIGTERM);
    if (!child.has_ended(kTermPatience)) child.signal_group(SIGKILL);
    child.wait();
    throw Error(ErrorCode::kProcess,
                fmt::format("it has not ended within {} s", kEndCommandLimit.count()));
  }
  if (child.status() != 0) throw Error(ErrorCode::kProcess, describe_exit(child.status()));
}

void call_webhook(const std::string& url, const EndedRun& run) {
  HttpRequest request;
  request.method = "POST";
  request.url = url;
  request.headers = {"Content-Type: application/json"};
  request.body = end_message(run);
  request.limit = kWebhookLimit;
  HttpAnswer answer;
  milliseconds pause = kBetweenTries;
  for (int i = 1; i <= kTries; ++i, pause *= 2) {
    answer = ask_http(request);
    // A refusal by the service stays one.
    const bool may_help = answer.status == 0 || answer.status == 429 || answer.status >= 500;
    if (answer.is_good() || !may_help) break;
    if (i < kTries) std::this_thread::sleep_for(pause);
  }
  if (answer.is_good()) return;
  throw Error(ErrorCode::kProcess,
              answer.status == 0 ? answer.error
                                 : fmt::format("the answer has the status {}", answer.status));
}

// OSC 9 is a note on the desktop where the terminal has that (iTerm2, kitty, Windows Terminal,
// WezTerm, foot); others pass over it.
void ring(const EndedRun& run) {
  const char* kind = std::getenv("TERM");
  if (isatty(STDERR_FILENO) == 0 || kind == nullptr || std::string(kind) == "dumb") return;
  std::string words;
  for (const char c : words_of(run)) words += static_cast<unsigned char>(c) < 32 ? ' ' : c;
  write_if_it_fits(STDERR_FILENO, fmt::format("\x1b]9;{}\x1b\\\a", words));
}

}  // namespace

EndedRun ended_run(const std::filesystem::path& directory, const std::string& status) {
  EndedRun run;
  run.status = status;
  run.directory = std::filesystem::absolute(directory);
  run.name = directory.filename().string();
  try {
    const Analysis analysis = Analysis::load(directory);
    run.name = analysis.name();
    run.metric = analysis.metric();
    run.trials = analysis.trials().size();
    for (const TrialSummary& trial : analysis.trials()) {
      if (trial.status == TrialStatus::kError) ++run.errored;
    }
    if (run.metric.empty()) return run;
    const TrialSummary best = analysis.best_trial();
    EndedRun::Best told{.trial = best.id, .config = best.config()};
    told.value = last_result_line(best.directory).number(run.metric).value_or(std::nan(""));
    run.best = std::move(told);
  } catch (const Error&) {  // no trial has a value, say
  }
  return run;
}

std::map<std::string, std::string> end_environment(const EndedRun& run) {
  std::map<std::string, std::string> told = {{"TUNE_NAME", run.name},
                                             {"TUNE_STATUS", run.status},
                                             {"TUNE_DIRECTORY", run.directory.string()},
                                             {"TUNE_TRIALS", std::to_string(run.trials)},
                                             {"TUNE_ERRORED", std::to_string(run.errored)},
                                             {"TUNE_METRIC", run.metric}};
  if (run.best) {
    told["TUNE_BEST_TRIAL"] = run.best->trial;
    told["TUNE_BEST_VALUE"] = to_json(Value(run.best->value));
    told["TUNE_BEST_CONFIG"] = to_json(run.best->config);
  }
  return told;
}

std::string end_message(const EndedRun& run) {
  Value message{{"text", words_of(run)}, {"name", run.name},
                {"status", run.status},  {"directory", run.directory.string()},
                {"trials", run.trials},  {"errored", run.errored},
                {"metric", run.metric}};
  if (run.best) {
    message.set("best", Value{{"trial_id", run.best->trial},
                              {"value", run.best->value},
                              {"config", static_cast<const Value&>(run.best->config)}});
  }
  return to_json(message);
}

void do_on_end(const OnEnd& wanted, const EndedRun& run,
               const std::function<void(const std::string&)>& notice) {
  const auto attempt = [&](const std::string& what, const std::function<void()>& work) {
    try {
      work();
    } catch (const std::exception& error) {
      notice(fmt::format("on_end: {}: {}", what, error.what()));
    }
  };
  if (wanted.terminal) ring(run);
  if (!wanted.command.empty()) {
    attempt(wanted.command.front(), [&] { run_command(wanted, run); });
  }
  if (!wanted.webhook.empty()) {
    attempt(shown_address(wanted.webhook), [&] { call_webhook(wanted.webhook, run); });
  }
}

}  // namespace tune
