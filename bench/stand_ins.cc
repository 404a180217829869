#include "bench/stand_ins.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "bench/harness.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/process.h"
#include "core/strings.h"

namespace tune::bench {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

nanoseconds now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

void fail(const std::string& why) {
  throw Error(ErrorCode::kTrialFailed, why);
}

void allow_many_files() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

// ---- A machine ----------------------------------------------------------------------------------

StandIn::StandIn(const JoinToken& token, int number, StandInTrials trials)
    : endpoint_(token, fmt::format("stand-in-{}", number)),
      name_(fmt::format("node-{}", number)),
      trials_(trials) {
  greet(0);
}

void StandIn::turn() {
  for (Command& command : endpoint_.receive()) {
    std::visit([this](const auto& one) { on(one); }, command);
  }
  const std::uint64_t epoch = endpoint_.driver_epoch();
  if (epoch != std::exchange(epoch_, epoch)) greet(epoch);
  const bool reports = trials_.report_every > nanoseconds{} && left_ > 0 && !live_.empty();
  while (reports && left_ > 0 && now() >= report_at_) {
    report_at_ += trials_.report_every;
    --left_;
    for (LiveAttempt& live : live_) report_once(live, false);
  }
  endpoint_.flush(now());
}

void StandIn::be_ready() {
  ZygoteReady ready;
  ready.trainables = {{trainable_, true, false}};
  endpoint_.send(ready);
}

void StandIn::report(std::uint64_t count) {
  left_ = count;
  report_at_ = now();
}

void StandIn::greet(std::uint64_t epoch) {
  AgentHello hello;
  hello.hostname = name_;
  hello.ip = "127.0.0.1";
  hello.cpu_units = 2 * trials_.at_once * kUnit;
  hello.joined = true;
  hello.live = live_;
  hello.epoch = epoch;
  endpoint_.send(hello);
}

void StandIn::on(const Apart<SetupExperiment>& setup) {
  trainable_ = setup->trainable;
  kept_by_ = endpoint_.driver_epoch();
  given_up_ += static_cast<int>(std::erase_if(live_, [&](const LiveAttempt& live) {
    return std::ranges::find(setup->keep, attempt_key(live.trial, live.attempt)) ==
           setup->keep.end();
  }));
}

void StandIn::on(const Launch& launch) {
  ++launches_;
  LiveAttempt live{launch.trial, launch.attempt};
  endpoint_.send(AttemptStarted{launch.trial, launch.attempt, 1});
  report_at_ = now();
  if (trials_.report_every > nanoseconds{}) return live_.push_back(live);
  report_once(live, true);
  end(live, Outcome::kCompleted);
}

void StandIn::on(const StopAttempt& stop) {
  const auto found = std::ranges::find_if(live_, [&](const LiveAttempt& live) {
    return live.trial == stop.trial && live.attempt == stop.attempt;
  });
  if (found == live_.end()) return;
  end(*found, Outcome::kPaused);
  live_.erase(found);
}

void StandIn::report_once(LiveAttempt& live, bool is_last) {
  Reported report;
  report.trial = live.trial;
  report.attempt = live.attempt;
  report.iteration = report.iterations_since_restore = ++live.iteration;
  report.time_this_iter = trials_.report_every;
  report.final = is_last;
  report.result = pack(Result{{"x", 0.5}});
  endpoint_.send(report);
  ++reported_;
}

void StandIn::end(const LiveAttempt& live, Outcome outcome) {
  AttemptEnded ended;
  ended.trial = live.trial;
  ended.attempt = live.attempt;
  ended.outcome = outcome;
  endpoint_.send(ended);
  ++ended_;
}

// ---- All of them --------------------------------------------------------------------------------

StandIns::StandIns(const JoinToken& token, int count, StandInTrials trials) : trials_(trials) {
  for (int i = 0; i < count; ++i) all_.push_back(std::make_unique<StandIn>(token, i, trials));
}

void StandIns::run_until(const std::string& what,
                         const std::function<bool(const StandIn&)>& holds) {
  run_until(what, [&] {
    return std::ranges::all_of(all_, [&](const auto& one) { return holds(*one); });
  });
}

void StandIns::run_until(const std::string& what, const std::function<bool()>& holds) {
  const auto end = now() + seconds(120);
  while (!holds()) {
    turn();
    if (now() > end) fail(what + " took longer than two minutes");
  }
}

void StandIns::run_for(nanoseconds time) {
  for (const auto end = now() + time; now() < end;) turn();
}

// Those with input at once, all of them now and then.
void StandIns::turn() {
  std::vector<pollfd> watched;
  for (const auto& one : all_) watched.push_back({one->descriptor(), POLLIN, 0});
  ::poll(watched.data(), watched.size(), 10);
  const nanoseconds pause = std::min<nanoseconds>(
      milliseconds(100), std::max<nanoseconds>(trials_.report_every, milliseconds(10)));
  const bool looks_at_all = now() - looked_ > pause;
  if (looks_at_all) looked_ = now();
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (looks_at_all || watched[i].revents != 0) all_[i]->turn();
  }
}

// ---- The driver ---------------------------------------------------------------------------------

namespace {

Child start(const std::vector<std::string>& command, const fs::path& output) {
  const FileDescriptor out(::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  return Child(spawn({.command = command, .output = out.get()}));
}

}  // namespace

ListeningSweep::ListeningSweep(const fs::path& storage, Wanted wanted) : storage_(storage) {
  fs::create_directories(storage);
  const fs::path file = storage / "sweep.yaml";
  write_file_atomically(file,
                        fmt::format("plugin: {}\ntrainable: empty_steps\nconfig: {{steps: 1}}\n"
                                    "num_samples: {}\nmetric: x\nmode: max\nseed: 1\n"
                                    "stop: {{training_iteration: {}}}\nlisten: lo\n"
                                    "cpus: 1\nresources_per_trial: {{cpu: 2}}\n",
                                    TUNE_SYNTHETIC_PLUGIN, wanted.trials, wanted.iterations));
  driver_ = start({tune_program(), "run", file, "--quiet", "--name", "s", "--storage", storage},
                  storage / "output");
  for (int i = 0; !fs::exists(storage / "s" / "nodes" / "join"); ++i) {
    if (i > 2000 || !driver_.is_running()) fail("the driver does not listen");
    std::this_thread::sleep_for(milliseconds(10));
  }
}

JoinToken ListeningSweep::token() const {
  return read_token(storage_ / "s" / "nodes" / "join");
}

void ListeningSweep::resume() {
  driver_ = start({tune_program(), "resume", storage_ / "s", "--quiet"}, storage_ / "resumed");
}

void ListeningSweep::end(StandIns& machines) {
  driver_.signal(SIGTERM);
  run_out(machines);
}

void ListeningSweep::run_out(StandIns& machines) {
  machines.run_until("the driver's end", [&] { return driver_.has_ended(); });
}

std::uint64_t ListeningSweep::results() const {
  std::uint64_t lines = 0;
  for (const auto& entry : fs::directory_iterator(storage_ / "s")) {
    const fs::path file = entry.path() / "result.json";
    if (!fs::exists(file)) continue;
    const std::string text = read_file(file);
    lines += static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
  }
  return lines;
}

}  // namespace tune::bench
