#include "tune/results/callback.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "tune/export/callback_export.h"
#include "view/folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::add_trial;
using testing::append_text;
using testing::event;
using testing::trial_name;
using testing::write_text;

using Lines = std::vector<std::string>;

class Notes : public Callback {
 public:
  void trial_started(const CallbackTrial& trial) override {
    lines.push_back("start " + trial.id + " " + trial.config().dump());
  }
  void result(const CallbackTrial& trial, const Result& result) override {
    lines.push_back("result " + std::to_string(trial.number) + " " + result.at("loss").dump());
    if (throws) throw std::runtime_error("no");
  }
  void checkpoint(const CallbackTrial& trial, const fs::path& folder, std::uint64_t at) override {
    lines.push_back("checkpoint " + std::to_string(trial.number) + " " +
                    folder.filename().string() + " " + std::to_string(at));
  }
  void trial_ended(const CallbackTrial& trial, TrialStatus status) override {
    lines.push_back("end " + std::to_string(trial.number) + " " + status_name(status));
  }
  void sweep_ended(const fs::path& experiment) override {
    lines.push_back("over " + experiment.filename().string());
  }
  Lines take() { return std::exchange(lines, {}); }

  Lines lines;
  bool throws = false;
};

struct Told {
  testing::TemporaryFolder folder;
  fs::path experiment = folder.path() / "s";
  std::shared_ptr<Notes> notes = std::make_shared<Notes>();

  Told() { testing::begin_experiment(experiment, "running"); }
  // As a start of the sweep does.
  std::unique_ptr<CallbackExport> begin() const {
    return std::make_unique<CallbackExport>(notes, experiment, experiment / "callbacks/1.told");
  }
  void say(const std::string& line) const { append_text(experiment / "events.jsonl", line); }
};

void look(CallbackExport& told) {
  told.write_news([] { return false; });
}

TEST_CASE("a callback is told what happens, each once and in order") {
  Told sweep;
  const auto told = sweep.begin();
  look(*told);
  CHECK(sweep.notes->take().empty());
  add_trial(sweep.experiment, 0, R"({"lr":0.1})", "");
  sweep.say(event("attempt_started", 0));
  look(*told);
  CHECK(sweep.notes->take() == Lines{"start " + trial_name(0) + R"( {"lr":0.1})"});
  const fs::path trial = sweep.experiment / trial_name(0);
  write_text(trial / "result.json", "{\"loss\":3}\n{\"loss\":2}\n");
  fs::create_directories(trial / "checkpoint_000002");
  fs::create_directories(trial / ".checkpoint_000003.tmp-1");
  look(*told);
  look(*told);
  CHECK(sweep.notes->take() ==
        Lines{"result 0 3", "result 0 2", "checkpoint 0 checkpoint_000002 2"});
  sweep.say(event("trial_ended", 0, R"(,"status":"TERMINATED")"));
  look(*told);
  look(*told);
  told->finish();
  CHECK(sweep.notes->take() == Lines{"end 0 TERMINATED", "over s"});
  CHECK(told->take_problems().empty());
}

TEST_CASE("a resume tells what is new, and a step that is done again is not") {
  Told sweep;
  add_trial(sweep.experiment, 0, R"({"lr":0.1})", "{\"loss\":3}\n{\"loss\":2}\n");
  sweep.say(event("attempt_started", 0));
  look(*sweep.begin());
  CHECK(sweep.notes->take().size() == 3);
  // From a checkpoint after the first step.
  write_text(sweep.experiment / trial_name(0) / "result.json",
             "{\"loss\":3}\n{\"loss\":2.5}\n{\"loss\":1}\n");
  look(*sweep.begin());
  CHECK(sweep.notes->take() == Lines{"result 0 1"});
  append_text(sweep.experiment / "callbacks/1.told", "0 99");  // killed while it wrote
  look(*sweep.begin());
  CHECK(sweep.notes->take().empty());
}

TEST_CASE("a failed trial that is tried again ends again") {
  Told sweep;
  add_trial(sweep.experiment, 0, R"({"lr":0.1})", "");
  sweep.say(event("attempt_started", 0) + event("trial_ended", 0, R"(,"status":"ERROR")"));
  const auto told = sweep.begin();
  look(*told);
  CHECK(sweep.notes->take().back() == "end 0 ERROR");
  sweep.say(event("attempt_started", 0));
  look(*told);
  sweep.say(event("trial_ended", 0, R"(,"status":"TERMINATED")"));
  look(*told);
  CHECK(sweep.notes->take() == Lines{"end 0 TERMINATED"});
}

TEST_CASE("what a callback throws is said once, and it goes on being called") {
  Told sweep;
  sweep.notes->throws = true;
  add_trial(sweep.experiment, 0, R"({"lr":0.1})", "{\"loss\":3}\n{\"loss\":2}\n");
  const auto told = sweep.begin();
  look(*told);
  CHECK(sweep.notes->take().size() == 3);
  const Lines problems = told->take_problems();
  REQUIRE(problems.size() == 1);
  CHECK_HAS(problems[0], "it threw: no");
  CHECK(told->take_problems().empty());
}

}  // namespace
}  // namespace tune
