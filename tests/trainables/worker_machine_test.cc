// The machine alone, on virtual time: the test is the process around it.
#include "trainables/worker_machine.h"

#include <doctest/doctest.h>

#include <chrono>

using namespace tune;
using Seconds = std::chrono::seconds;

namespace {

StartWorker start_of(std::uint32_t ranks, std::uint32_t rank) {
  StartWorker start;
  start.experiment.checkpoint = {.frequency = 0, .at_end = false, .keep = 1};
  start.launch.trial = {7};
  start.launch.attempt = {2};
  start.launch.ranks = ranks;
  start.rank = rank;
  return start;
}

// The machine's wishes, as words: "say report 1, listen".
std::string word(const WorkerEvent& event) {
  if (const auto* report = std::get_if<Reported>(&event)) {
    return "report " + std::to_string(report->iteration) + (report->final ? " final" : "") +
           (report->waiting ? " waiting" : "");
  }
  if (const auto* step = std::get_if<GroupStep>(&event)) {
    const char* names[] = {"step ", "save ", "end "};
    return names[static_cast<int>(step->action)] + std::to_string(step->iteration);
  }
  if (const auto* saved = std::get_if<RankSaved>(&event)) {
    return "saved " + std::to_string(saved->iteration);
  }
  if (const auto* copied = std::get_if<RankCopied>(&event)) {
    return "copied " + std::to_string(copied->iteration);
  }
  if (std::holds_alternative<PhaseDone>(event)) return "done";
  if (std::holds_alternative<WorkerEnded>(event)) return "ended";
  return "warning";
}

std::string word(const WorkerAction& action) {
  if (const auto* said = std::get_if<SayToAgent>(&action)) return "say " + word(said->event);
  if (const auto* made = std::get_if<PrepareCheckpoint>(&action)) {
    return "prepare " + std::to_string(made->iteration);
  }
  if (const auto* write = std::get_if<WriteCheckpoint>(&action)) {
    return "write " + std::to_string(write->iteration);
  }
  if (const auto* beside = std::get_if<WriteBeside>(&action)) {
    return "write " + std::to_string(beside->saved.iteration) + " beside";
  }
  if (const auto* listen = std::get_if<ListenToAgent>(&action)) {
    return listen->wait ? "wait" : "listen";
  }
  if (std::holds_alternative<BeginStep>(action)) return "begin";
  if (std::holds_alternative<LeaveAttempt>(action)) return "leave";
  if (const auto* fail = std::get_if<FailAttempt>(&action)) return "fail: " + fail->cause;
  return "exit";
}

class Process {
 public:
  explicit Process(StartWorker start) : start_(std::move(start)), machine_(start_) {}
  std::string ready() { return machine_.on_ready(), done(); }
  std::string set_up() { return machine_.on_set_up(), done(); }
  std::string silence() { return machine_.on_silence(now), done(); }
  std::string saved() { return machine_.on_saved(), done(); }
  std::string copied() { return machine_.on_copied(), done(); }
  std::string returned() { return machine_.on_returned(), done(); }
  std::string hear(const WorkerCommand& command) { return machine_.on_command(command), done(); }
  std::string report(const Value& result = Config{{"x", 1}}, bool can_save = true) {
    return machine_.on_report(now, pack(result), can_save), done();
  }
  void fail(const std::string& cause) { machine_.on_failed(cause, true); }
  Outcome outcome() const { return machine_.last_word().outcome; }
  // Of the last answer.
  const Reported& reported() const { return reported_; }

  Duration now = Seconds(100);

 private:
  std::string done() {
    std::string words;
    machine_.take_actions(actions_);
    for (const WorkerAction& action : actions_) {
      words += (words.empty() ? "" : ", ") + word(action);
      if (const auto* said = std::get_if<SayToAgent>(&action)) {
        if (const auto* report = std::get_if<Reported>(&said->event)) reported_ = *report;
      }
    }
    return words;
  }
  StartWorker start_;
  WorkerMachine machine_;
  std::vector<WorkerAction> actions_;
  Reported reported_;
};

StopAttempt stop(StopKind kind) {
  return {{7}, {2}, kind, {}};
}
Continue go(const char* attribute, double value) {
  return {{7}, {2}, {attribute, value}};
}

TEST_CASE("a rank alone reports, looks for a verdict and goes on") {
  Process worker(start_of(1, 0));
  CHECK(worker.ready() == "listen");
  CHECK(worker.silence() == "begin");
  CHECK(worker.report() == "say report 1, listen");
  CHECK(worker.silence() == "begin");
  CHECK(worker.returned() == "leave");
  CHECK(worker.outcome() == Outcome::kCompleted);
}

TEST_CASE("a step lasts from the word to begin it to its report") {
  StartWorker start = start_of(1, 0);
  start.launch.restore_iteration = 3;
  start.launch.time_total = Seconds(50);
  start.launch.timesteps_total = 30;
  start.launch.until = {"training_iteration", 4};
  Process worker(start);
  worker.set_up();
  worker.ready();
  worker.now += Seconds(5);  // of setup: of no step
  worker.silence();
  worker.now += Seconds(2);
  CHECK(worker.report(Config{{"timesteps_this_iter", 10}}) == "say report 4 waiting, wait");
  CHECK(worker.reported().time_this_iter == Seconds(2));
  CHECK(worker.reported().time_total == Seconds(52));
  CHECK(worker.reported().time_since_restore == Seconds(2));
  CHECK(worker.reported().iterations_since_restore == 1);
  CHECK(worker.reported().timesteps_total == 40);
  worker.now += Seconds(60);  // the verdict took long
  worker.hear(go("training_iteration", 9));
  worker.silence();
  worker.now += Seconds(3);
  CHECK(worker.report() == "say report 5, listen");
  CHECK(worker.reported().time_this_iter == Seconds(3));
  CHECK(worker.reported().time_total == Seconds(55));
}

TEST_CASE("what ends a trial is final and no verdict is awaited") {
  const Value more = Config{{"x", 1}, {"deep", {{"y", 2.5}}}};
  const struct {
    const char* what;
    StopRule rule;
    Duration limit;
    Value result;
    bool is_final;
  } cases[] = {
      {"done", {}, {}, Config{{"done", true}}, true},
      {"not done", {}, {}, Config{{"done", false}}, false},
      {"a number is no `done`", {}, {}, Config{{"done", 1}}, false},
      {"done below", {}, {}, Config{{"deep", {{"done", true}}}}, false},
      {"reached", {"deep/y", 2.5, false}, {}, more, true},
      {"not reached", {"deep/y", 2.6, false}, {}, more, false},
      {"at most", {"deep/y", 2.5, true}, {}, more, true},
      {"not at most", {"deep/y", 2.4, true}, {}, more, false},
      {"absent", {"deep/z", 0, false}, {}, more, false},
      {"no number", {"deep", 0, false}, {}, more, false},
      {"the framework's", {"training_iteration", 1, false}, {}, more, true},
      {"a text does not hide it",
       {"training_iteration", 1, false},
       {},
       Config{{"training_iteration", "epoch 1"}},
       true},
      {"a number goes before it",
       {"training_iteration", 1, false},
       {},
       Config{{"training_iteration", 0}},
       false},
      {"time is up", {}, Seconds(2), more, true},
      {"time is left", {}, Seconds(3), more, false},
  };
  for (const auto& one : cases) {
    CAPTURE(one.what);
    StartWorker start = start_of(1, 0);
    if (!one.rule.path.empty()) start.experiment.stop = {one.rule};
    start.experiment.max_trial_time = one.limit;
    start.launch.until = {"training_iteration", 1};
    Process worker(start);
    worker.ready();
    worker.silence();
    worker.now += Seconds(2);
    const bool is_due = one.result.find("training_iteration") == nullptr;
    const char* goes_on = is_due ? "say report 1 waiting, wait" : "say report 1, listen";
    CHECK(worker.report(one.result) == (one.is_final ? "say report 1 final, leave" : goes_on));
  }
}

TEST_CASE("a verdict is awaited only where the milestone is reached") {
  StartWorker start = start_of(1, 0);
  start.launch.until = {"x", 2};
  Process worker(start);
  worker.ready();
  worker.silence();
  CHECK(worker.report(Config{{"x", 1}}) == "say report 1, listen");
  worker.silence();
  CHECK(worker.report(Config{{"y", 5}}) == "say report 2, listen");
  worker.silence();
  CHECK(worker.report(Config{{"x", 2}}) == "say report 3 waiting, wait");
  CHECK(worker.hear(go("x", 4)) == "listen");
  CHECK(worker.silence() == "begin");
}

TEST_CASE("checkpoints are written when they are due, once an iteration") {
  StartWorker start = start_of(1, 0);
  start.experiment.checkpoint = {.frequency = 2, .at_end = true, .keep = 1};
  start.experiment.stop = {{"training_iteration", 2, false}};
  Process worker(start);
  worker.ready();
  worker.silence();
  CHECK(worker.report() == "say report 1, listen");
  SUBCASE("at the end") {
    worker.silence();
    CHECK(worker.report() == "say report 2 final, prepare 2, write 2");
    CHECK(worker.saved() == "say saved 2, leave");
    CHECK(worker.outcome() == Outcome::kCompleted);
  }
  SUBCASE("at a stop") {
    CHECK(worker.hear(stop(StopKind::kStop)) == "prepare 1, write 1");
    CHECK(worker.saved() == "say saved 1, leave");
    CHECK(worker.outcome() == Outcome::kStopped);
  }
  SUBCASE("while it goes on") {
    start.experiment.stop.clear();
    Process other(start);
    other.ready();
    other.silence();
    other.report();
    other.silence();
    CHECK(other.report() == "say report 2, prepare 2, write 2");
    CHECK(other.saved() == "say saved 2, listen");
    CHECK(other.hear(stop(StopKind::kPause)) == "leave");  // it is there
    CHECK(other.outcome() == Outcome::kPaused);
  }
}

TEST_CASE("a checkpoint that is copied is written beside the next steps, and counts as saved") {
  StartWorker start = start_of(1, 0);
  start.experiment.checkpoint = {.frequency = 1, .at_end = true, .keep = 1};
  Process worker(start);
  worker.ready();
  worker.silence();
  CHECK(worker.report() == "say report 1, prepare 1, write 1");
  CHECK(worker.copied() == "say copied 1, write 1 beside, listen");
  SUBCASE("steps go on") {
    CHECK(worker.silence() == "begin");
    CHECK(worker.report() == "say report 2, prepare 2, write 2");
  }
  SUBCASE("a pause needs no other") {
    CHECK(worker.hear(stop(StopKind::kPause)) == "leave");
    CHECK(worker.outcome() == Outcome::kPaused);
  }
}

TEST_CASE("a due checkpoint that cannot be written is said once") {
  StartWorker start = start_of(1, 0);
  start.experiment.checkpoint.frequency = 1;
  Process worker(start);
  worker.ready();
  worker.silence();
  CHECK(worker.report({{"x", 1}}, false) == "say report 1, say warning, listen");
  worker.silence();
  CHECK(worker.report({{"x", 1}}, false) == "say report 2, listen");
}

TEST_CASE("a pause ends as paused only with a checkpoint of this iteration") {
  const struct {
    std::uint64_t restored;
    bool steps;
    bool can_save;
    Outcome outcome;
  } cases[] = {
      {0, false, true, Outcome::kLost},    // nothing to save before the first step
      {3, false, true, Outcome::kPaused},  // still where its checkpoint is
      {3, true, false, Outcome::kLost},
      {3, true, true, Outcome::kPaused},
  };
  for (const auto& one : cases) {
    StartWorker start = start_of(1, 0);
    start.launch.restore_iteration = one.restored;
    Process worker(start);
    worker.ready();
    if (one.steps) worker.silence(), worker.report({{"x", 1}}, one.can_save);
    const bool writes = one.steps && one.can_save;
    CHECK(worker.hear(stop(StopKind::kPause)) == (writes ? "prepare 4, write 4" : "leave"));
    if (writes) CHECK(worker.saved() == "say saved 4, leave");
    CHECK(worker.outcome() == one.outcome);
  }
}

TEST_CASE("rank 0 tells the group before it does anything itself") {
  StartWorker start = start_of(3, 0);
  start.experiment.checkpoint = {.frequency = 1, .at_end = true, .keep = 1};
  Process leader(start);
  CHECK(leader.ready() == "say done, listen");
  CHECK(leader.silence() == "say step 1, begin");
  CHECK(leader.report() == "say report 1, prepare 1, say save 1, write 1");
  CHECK(leader.saved() == "say saved 1, listen");
  CHECK(leader.hear(stop(StopKind::kStop)) == "say end 1, leave");
}

TEST_CASE("a held group stays at its step boundary until it may go on or is stopped") {
  Process leader(start_of(2, 0));
  leader.ready();
  leader.silence();
  CHECK(leader.report() == "say report 1, listen");
  CHECK(leader.hear(HoldGroup{true}) == "wait");
  CHECK(leader.hear(go("x", 4)) == "wait");
  SUBCASE("on") {
    CHECK(leader.hear(HoldGroup{false}) == "listen");
    CHECK(leader.silence() == "say step 2, begin");
  }
  SUBCASE("stopped") {
    CHECK(leader.hear(stop(StopKind::kStop)) == "say end 1, leave");
    CHECK(leader.outcome() == Outcome::kStopped);
  }
}

TEST_CASE("another rank does what rank 0 says, and nothing else") {
  Process follower(start_of(2, 1));
  CHECK(follower.set_up() == "say done");
  CHECK(follower.ready() == "say done, wait");
  CHECK(follower.hear(GroupStep{1, GroupAction::kStep}) == "begin");
  CHECK(follower.report() == "say done, wait");
  CHECK(follower.hear(GroupStep{1, GroupAction::kSave}) == "write 1");
  CHECK(follower.saved() == "say saved 1, wait");
  SUBCASE("the end") {
    CHECK(follower.hear(GroupStep{1, GroupAction::kEnd}) == "leave");
    CHECK(follower.outcome() == Outcome::kCompleted);
  }
  SUBCASE("a step that is not its next") {
    CHECK(follower.hear(GroupStep{3, GroupAction::kStep}) ==
          "fail: rank 1 has done 1 steps when rank 0 begins step 3: all ranks must report equally "
          "often");
  }
  SUBCASE("a verdict, which is rank 0's to hear") {
    CHECK(follower.hear(stop(StopKind::kStop)) ==
          "fail: the agent sent a command that does not fit a step boundary");
  }
  SUBCASE("a function that returns early") {
    CHECK(follower.returned() == "leave");
  }
}

TEST_CASE("a word that is rank 0's own does not come from the agent") {
  Process leader(start_of(2, 0));
  leader.ready();
  CHECK(leader.hear(GroupStep{1, GroupAction::kStep}).starts_with("fail: "));
}

TEST_CASE("a rank alone says its first step, as a sign of life, where hanging is watched for") {
  StartWorker start = start_of(1, 0);
  start.experiment.hang_timeout = Seconds(9);
  Process worker(start);
  worker.ready();
  CHECK(worker.silence() == "say step 1, begin");
  worker.report();
  CHECK(worker.silence() == "begin");
}

TEST_CASE("an attempt that has failed stays failed, whatever the user's code does then") {
  StartWorker start = start_of(1, 0);
  start.experiment.checkpoint.frequency = 1;
  Process worker(start);
  worker.ready();
  worker.silence();
  worker.report();
  worker.fail("save: disk full");
  CHECK(worker.report() == "fail: save: disk full");
  worker.fail("step: something later");
  CHECK(worker.returned() == "fail: save: disk full");
}

TEST_CASE("a report after the end ends the process") {
  Process worker(start_of(1, 0));
  worker.ready();
  CHECK(worker.hear(stop(StopKind::kStop)) == "leave");
  CHECK(worker.report() == "say ended, exit");
}

TEST_CASE("a trial that leaves its state saves nothing, also at the end of a checkpoint policy") {
  StartWorker start = start_of(1, 0);
  start.experiment.checkpoint.at_end = true;
  start.launch.until = {"training_iteration", 1};
  Process worker(start);
  worker.ready();
  worker.silence();
  CHECK(worker.report() == "say report 1 waiting, wait");
  CHECK(worker.hear(stop(StopKind::kLeave)) == "leave");
  CHECK(worker.outcome() == Outcome::kStopped);
}

TEST_CASE("a verdict to go on may ask for a save, which all ranks make before the next step") {
  StartWorker start = start_of(2, 0);
  start.launch.until = {"training_iteration", 1};
  Process leader(start);
  leader.ready();
  leader.silence();
  leader.report();
  Continue with_save = go("training_iteration", 5);
  with_save.save = true;
  CHECK(leader.hear(with_save) == "prepare 1, say save 1, write 1");
  CHECK(leader.saved() == "say saved 1, listen");
  CHECK(leader.silence() == "say step 2, begin");
}

TEST_CASE("a save that is asked for and cannot be made is told once") {
  StartWorker start = start_of(1, 0);
  start.launch.until = {"x", 0};
  Process worker(start);
  worker.ready();
  Continue with_save = go("x", 0);
  with_save.save = true;
  worker.silence();
  CHECK(worker.report(Config{{"x", 1}}, false) == "say report 1 waiting, wait");
  CHECK(worker.hear(with_save) == "say warning, listen");
  worker.silence();
  worker.report(Config{{"x", 1}}, false);
  CHECK(worker.hear(with_save) == "listen");
}

TEST_CASE(
    "a replaced trial counts on from its own iteration, and needs no save to be paused there") {
  StartWorker start = start_of(1, 0);
  start.launch.restore_iteration = 8;
  start.restore_folder = "/results/x/0a1b2_00001/checkpoint_000009";
  Process worker(start);
  worker.set_up();
  CHECK(worker.ready() == "listen");
  CHECK(worker.hear(stop(StopKind::kPause)) == "leave");
  CHECK(worker.outcome() == Outcome::kPaused);

  Process other(start);
  other.ready();
  other.silence();
  CHECK(other.report() == "say report 9, listen");
}

}  // namespace
