// Faulty: fails on order, to see what the framework makes of it. Otherwise it counts.
//
//   fail_in        setup | step | save | write | load | none; a list says it for each attempt. A
//   step
//                  that fails before an attempt that fails in its load waits for that load's
//                  checkpoint. write: checkpoints are written beside the steps, and fail half way
//   fail_how       throw | throw_int | exit | abort | segv | kill | hang | stop (by a signal)
//   fail_at        1      the step (counted over restores) at which step or save fails
//   fail_attempts  1      it fails in attempts up to this one (of a list: its length)
//   fail_rank      -1     only this rank fails; -1: every rank
//   fail_gpu              only where this GPU is the first one, in any attempt
//   step_ms        0      how long a step takes
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "core/checkpoint_name.h"
#include "core/error.h"
#include "trainables/registry.h"
#include "trainables/synthetic/state_file.h"

namespace tune::synthetic {
namespace {

[[noreturn]] void hang() {
  for (;;) ::pause();
}

void fail(const std::string& how, const std::string& where) {
  if (how == "throw") throw std::runtime_error("told to fail in " + where);
  if (how == "throw_int") throw 42;
  if (how == "exit") std::exit(3);
  if (how == "abort") std::abort();
  if (how == "segv") std::raise(SIGSEGV);
  if (how == "kill") std::raise(SIGKILL);
  if (how == "hang") hang();
  if (how == "stop") {
    std::raise(SIGSTOP);
    return;  // it goes on when it is told to
  }
  throw Error(ErrorCode::kBadInput, "Faulty does not know fail_how \"" + how + "\"");
}

class Faulty : public Trainable {
 public:
  void setup(const Config& config) override {
    const Value* where = config.find("fail_in");
    if (where != nullptr && where->is_list()) {
      where_ = where->as<std::vector<std::string>>();
    } else {
      where_.assign(config.get_or("fail_attempts", 1u), config.get_or("fail_in", "none"));
    }
    how_ = config.get_or("fail_how", "throw");
    at_ = config.get_or("fail_at", std::uint64_t{1});
    rank_ = config.get_or("fail_rank", -1);
    step_ms_ = config.get_or("step_ms", 0.0);
    const std::string gpu = config.get_or("fail_gpu", "");
    if (!gpu.empty()) {
      const bool is_there = !context().gpu_ids().empty() && context().gpu_ids().front() == gpu;
      const std::string in = config.get<std::string>("fail_in");
      where_.assign(is_there ? context().attempt() : 0, in);
    }
    fail_if_told("setup", at_);
  }

  Result step() override {
    ++count_;
    if (step_ms_ > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(step_ms_));
    }
    const std::size_t attempt = context().attempt();
    if (count_ == at_ && attempt < where_.size() && where_[attempt] == "load") await_checkpoint();
    fail_if_told("step", count_);
    return {{"count", count_}};
  }

  void save(const std::filesystem::path& directory) override {
    if (std::ranges::count(where_, "write") > 0) return save_beside(directory);
    if (context().rank() == 0) write_state(directory, {{"count", count_}});
    fail_if_told("save", count_);
  }
  void load(const std::filesystem::path& directory) override {
    count_ = read_state(directory).get<std::uint64_t>("count");
    fail_if_told("load", at_);
  }

 private:
  void save_beside(const std::filesystem::path& directory) {
    if (context().rank() != 0) return;
    context().write_beside([this, directory, count = count_] {
      std::ofstream(directory / "begun") << count;
      fail_if_told("write", count);
      write_state(directory, {{"count", count}});
    });
  }
  // Waits for the checkpoint of the step before: complete when every rank has saved, which this one
  // does not wait for.
  void await_checkpoint() const {
    while (at_ > 1 && !has_checkpoint(at_ - 1)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  bool has_checkpoint(std::uint64_t iteration) const {  // of this attempt or one before it
    for (auto attempt = static_cast<std::uint32_t>(context().attempt()); attempt > 0; --attempt) {
      const std::string name = checkpoint_name(iteration, AttemptNumber{attempt});
      if (std::filesystem::exists(context().trial_directory() / name)) return true;
    }
    return false;
  }
  void fail_if_told(const std::string& here, std::uint64_t count) const {
    const bool mine = rank_ < 0 || rank_ == context().rank();
    const std::size_t attempt = context().attempt();
    if (attempt > where_.size() || where_[attempt - 1] != here || !mine || count != at_) return;
    std::fprintf(stderr, "rank %d is to fail in %s\n", context().rank(), here.c_str());
    fail(how_, here);
  }

  std::vector<std::string> where_;  // by attempt
  std::string how_;
  std::uint64_t at_ = 1;
  int rank_ = -1;
  double step_ms_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace

TUNE_TRAINABLE(Faulty)

}  // namespace tune::synthetic
