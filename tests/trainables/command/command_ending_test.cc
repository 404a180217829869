// Programs are stopped, paused and started again, and nothing of them stays.
#include <doctest/doctest.h>

#include "core/checkpoint_name.h"
#include "core/refusal.h"
#include "trainables/command/command_process.h"

namespace tune {
namespace {

using namespace tune::testing;

StopRule after(double iterations) {
  return {"training_iteration", iterations, false};
}

// The pid that a program has written into a file of its trial.
pid_t pid_in(const std::filesystem::path& file) {
  wait_for(file);
  std::string text;
  while (text.empty() || text.back() != '\n') text = read_text(file);
  return std::stoi(text);
}

bool lives(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

TEST_CASE("a stop rule ends a program by SIGTERM, with time to end") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.stop = {after(2)};
  CommandProcess worker(shell("trap 'touch $TUNE_TRIAL_DIR/ended; exit 5' TERM; "
                              "for i in 1 2 3; do echo \"tune: {\\\"x\\\": $i}\"; done; "
                              "while :; do sleep 0.01; done"),
                        start);
  CHECK(worker.results() == "{\"x\":1}\n{\"x\":2}\n");  // the third is after the end
  CHECK(worker.ended().outcome == Outcome::kCompleted);
  CHECK(worker.wait() == 0);
  CHECK(std::filesystem::exists(folder.path() / "0a1b2_00007/ended"));
}

TEST_CASE("a program that says done may end by itself") {
  TemporaryFolder folder;
  CommandProcess worker(shell("trap 'touch $TUNE_TRIAL_DIR/told' TERM; "
                              "echo 'tune: {\"x\": 1, \"done\": true}'; sleep 0.1; "
                              "touch $TUNE_TRIAL_DIR/ended"),
                        start_in(folder.path()));
  CHECK(worker.ended().outcome == Outcome::kCompleted);
  CHECK(worker.wait() == 0);
  CHECK(std::filesystem::exists(folder.path() / "0a1b2_00007/ended"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "0a1b2_00007/told"));
}

TEST_CASE("what ignores SIGTERM, or leaves its parent and session, is killed") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.stop = {after(1)};
  CommandSettings settings =
      shell("trap '' TERM; cd $TUNE_TRIAL_DIR; "
            "setsid sh -c 'echo $$ > daemon; while :; do sleep 1; done' & "
            "sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 1; done' & "
            "echo $$ > self; while ! test -s daemon -a -s child; do sleep 0.01; done; "
            "echo 'tune: {\"x\": 1}'; while :; do sleep 1; done");
  settings.grace_s = 0.1;
  CommandProcess worker(settings, start);
  const auto trial = folder.path() / "0a1b2_00007";
  CHECK(worker.ended().outcome == Outcome::kCompleted);
  for (const char* name : {"self", "child", "daemon"}) {
    CAPTURE(name);
    CHECK_FALSE(lives(pid_in(trial / name)));
  }
}

TEST_CASE("what a program leaves behind ends with it") {
  TemporaryFolder folder;
  CommandProcess worker(shell("cd $TUNE_TRIAL_DIR; setsid sh -c 'echo $$ > daemon; exec sleep 60' & "
                              "while ! test -s daemon; do sleep 0.01; done; echo 'tune: {}'"),
                        start_in(folder.path()));
  CHECK(worker.results() == "{}\n");
  CHECK(worker.ended().outcome == Outcome::kCompleted);
  CHECK_FALSE(lives(pid_in(folder.path() / "0a1b2_00007/daemon")));
}

TEST_CASE("a program whose report waits for a verdict is held, and stopped by it") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"training_iteration", 1};
  CommandProcess worker(
      shell("for i in 1 2 3 4; do echo \"tune: {\\\"x\\\": $i}\"; done; sleep 60"), start);
  CHECK(worker.expect<Reported>().waiting);
  CHECK(worker.says_nothing());
  worker.send(Continue{{7}, {1}, {"training_iteration", 3}});
  CHECK_FALSE(worker.expect<Reported>().waiting);
  CHECK(worker.expect<Reported>().waiting);
  worker.send(StopAttempt{{7}, {1}, StopKind::kStop, {}});
  CHECK(worker.ended().outcome == Outcome::kStopped);
  CHECK(worker.wait() == 0);
}

TEST_CASE("a program that reports seldom is stopped where it stands") {
  TemporaryFolder folder;
  CommandProcess worker(shell("touch $TUNE_TRIAL_DIR/begun; sleep 60"), start_in(folder.path()));
  wait_for(folder.path() / "0a1b2_00007/begun");
  worker.send(StopAttempt{{7}, {1}, StopKind::kPause, {}});
  CHECK(worker.ended().outcome == Outcome::kLost);  // it cannot be saved
}

TEST_CASE("the agent's SIGTERM ends a program and what ignores it") {
  TemporaryFolder folder;
  CommandProcess worker(shell("trap '' TERM; cd $TUNE_TRIAL_DIR; "
                              "setsid sh -c 'echo $$ > daemon; while :; do sleep 1; done' & "
                              "while ! test -s daemon; do sleep 0.01; done; echo $$ > self; "
                              "while :; do sleep 1; done"),
                        start_in(folder.path()));
  const pid_t self = pid_in(folder.path() / "0a1b2_00007/self");
  ::kill(-worker.pid(), SIGTERM);
  CHECK(worker.wait() != 0);
  CHECK_FALSE(lives(self));
  CHECK_FALSE(lives(pid_in(folder.path() / "0a1b2_00007/daemon")));
}

TEST_CASE("a SIGTERM that a program sends to its own group ends no worker") {
  TemporaryFolder folder;
  CommandProcess worker(shell("trap '' TERM; kill -TERM 0; echo 'tune: {\"x\": 1}'"),
                        start_in(folder.path()));
  CHECK(worker.results() == "{\"x\":1}\n");
  CHECK(worker.ended().outcome == Outcome::kCompleted);
}

// ---- Programs that save -------------------------------------------------------------------------

// Counts; saves and loads by the contract.
constexpr const char* kCounter = R"(
n=0
test -z "$TUNE_CHECKPOINT" || n=$(cat "$TUNE_CHECKPOINT/n")
echo hello 1 save >&$TUNE_FD
while n=$((n + 1)); do
  echo "{\"n\": $n}" >&$TUNE_FD
  while read word folder <&$TUNE_FD; do
    case $word in
      save) echo $n > "$folder/n"; echo saved >&$TUNE_FD ;;
      go) break ;;
      stop) echo stopped at $n; exit 0 ;;
    esac
  done
done)";

TEST_CASE("a program that says hello saves when it is told to, and stops by itself") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.checkpoint = {.frequency = 2, .at_end = true, .keep = 1};
  start.experiment.stop = {after(3)};
  CommandProcess worker(shell(kCounter), start);
  worker.expect<Reported>();
  worker.expect<Reported>();
  CHECK(worker.expect<RankSaved>().iteration == 2);
  CHECK(worker.expect<Reported>().final);
  CHECK(worker.expect<RankSaved>().iteration == 3);
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
  CHECK(worker.wait() == 0);
  const auto trial = folder.path() / "0a1b2_00007";
  CHECK(read_text(trial / temporary_checkpoint_name(2, {1}) / "n") == "2\n");
  CHECK(read_text(trial / temporary_checkpoint_name(3, {1}) / "n") == "3\n");
  CHECK_HAS(read_text(trial / "stdout"), "stopped at 3");
}

TEST_CASE("a program is paused with a checkpoint and goes on from it") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"training_iteration", 2};
  const auto trial = folder.path() / "0a1b2_00007";
  CommandSettings settings = shell(kCounter);
  settings.command.restart = CommandRestart::kFromCheckpoint;
  {
    CommandProcess worker(settings, start);
    worker.expect<Reported>();
    CHECK(worker.expect<Reported>().waiting);
    worker.send(StopAttempt{{7}, {1}, StopKind::kPause, {}});
    CHECK(worker.expect<RankSaved>().iteration == 2);
    CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kPaused);
    worker.wait();
  }
  std::filesystem::rename(trial / temporary_checkpoint_name(2, {1}), trial / checkpoint_name(2, {1}));
  start.launch.attempt = {2};
  start.launch.restore_iteration = 2;
  start.launch.restore_attempt = {1};
  start.launch.until = {};
  start.experiment.stop = {after(4)};
  CommandProcess worker(settings, start);
  CHECK(worker.results() == "{\"n\":3}\n{\"n\":4}\n");
}

TEST_CASE("a save that fails fails the trial, and so does a program that promised to save") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.checkpoint.frequency = 1;
  CommandProcess worker(shell("(echo hello 1 save; echo '{}') >&$TUNE_FD; read word <&$TUNE_FD; "
                              "echo failed no room >&$TUNE_FD; sleep 60"),
                        start);
  CHECK(worker.ended().cause == "save: no room");
  CommandProcess died(shell("(echo hello 1 save; echo '{}') >&$TUNE_FD; read word <&$TUNE_FD"),
                      start);
  CHECK(died.ended().cause == "save: the program exited with code 0 meanwhile");
  CommandSettings settings = shell("echo 'tune: {}'; sleep 60");
  settings.command.restart = CommandRestart::kFromCheckpoint;
  CommandProcess silent(settings, start_in(folder.path()));
  CHECK_HAS(silent.ended().cause, "restart: from_checkpoint wants a program that saves");
}

TEST_CASE("from scratch, a paused program begins anew and its known reports are skipped") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"training_iteration", 2};
  const auto trial = folder.path() / "0a1b2_00007";
  CommandSettings settings =
      shell("for i in 1 2 3 4; do echo \"tune: {\\\"x\\\": $i}\"; done; "
            "touch $TUNE_TRIAL_DIR/printed; sleep 60 & wait");
  settings.command.restart = CommandRestart::kFromScratch;
  {
    CommandProcess worker(settings, start);
    worker.expect<Reported>();
    CHECK(worker.expect<Reported>().waiting);
    worker.send(StopAttempt{{7}, {1}, StopKind::kPause, {}});
    CHECK(worker.expect<RankSaved>().iteration == 2);
    CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kPaused);
    worker.wait();
  }
  std::filesystem::rename(trial / temporary_checkpoint_name(2, {1}), trial / checkpoint_name(2, {1}));
  start.launch.attempt = {2};
  start.launch.restore_iteration = 2;
  start.launch.restore_attempt = {1};
  start.launch.until = {"training_iteration", 4};
  CommandProcess worker(settings, start);
  const auto third = worker.expect<Reported>();
  CHECK(third.iteration == 3);
  CHECK(unpack(third.result).dump() == "{\"x\":3}");
  CHECK(worker.expect<Reported>().waiting);
  worker.send(StopAttempt{{7}, {1}, StopKind::kStop, {}});
  CHECK(worker.ended().outcome == Outcome::kStopped);
}

// ---- Groups -------------------------------------------------------------------------------------

TEST_CASE("a rank that does not report follows rank 0 and has torchrun's variables") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.ranks = 2;
  start.rank = 1;
  start.environment = {{"RANK", "1"}, {"WORLD_SIZE", "2"}};
  CommandProcess worker(shell("echo rank $RANK of $WORLD_SIZE; echo 'tune: {\"x\": 1}'; "
                              "touch $TUNE_TRIAL_DIR/begun; sleep 60"),
                        start);
  worker.expect<PhaseDone>();  // setup
  worker.send(GroupStep{1, GroupAction::kStep});
  wait_for(folder.path() / "0a1b2_00007/begun");
  worker.send(GroupStep{2, GroupAction::kStep});
  worker.expect<PhaseDone>();  // of step 1, when rank 0 has finished it
  const auto trial = folder.path() / "0a1b2_00007";
  std::filesystem::create_directories(trial / temporary_checkpoint_name(2, {1}));  // by rank 0
  worker.send(GroupStep{2, GroupAction::kSave});
  worker.expect<PhaseDone>();
  CHECK(worker.expect<RankSaved>().iteration == 2);
  worker.send(GroupStep{2, GroupAction::kEnd});
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
  CHECK(worker.wait() == 0);
  CHECK(read_text(trial / "stdout.1") ==
        "--- attempt 1 ---\nrank 1 of 2\ntune: {\"x\": 1}\n");
}

TEST_CASE("a rank that does not report takes rank 0's words however many come at once") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.ranks = 2;
  start.rank = 1;
  CommandProcess worker(shell("exit 0"), start);
  worker.expect<PhaseDone>();
  for (std::uint64_t step = 1; step <= 4; ++step) worker.send(GroupStep{step, GroupAction::kStep});
  worker.send(GroupStep{4, GroupAction::kEnd});
  for (int step = 1; step <= 3; ++step) worker.expect<PhaseDone>();
  while (auto event = worker.next()) {
    if (std::holds_alternative<WorkerEnded>(*event)) break;
  }
  CHECK(worker.wait() == 0);
}

TEST_CASE("a rank that fails fails at once, whatever rank 0 does") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.ranks = 2;
  start.rank = 1;
  CommandProcess worker(shell("exit 3"), start);
  worker.expect<PhaseDone>();
  worker.send(GroupStep{1, GroupAction::kStep});
  const auto ended = worker.expect<WorkerEnded>();
  CHECK(ended.cause == "the program exited with code 3");
  CHECK(ended.is_of_group);  // it may echo the end of another
}

TEST_CASE("a rank that says hello takes part in each step") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.ranks = 2;
  start.rank = 1;
  CommandProcess worker(shell(kCounter), start);
  worker.expect<PhaseDone>();
  worker.send(GroupStep{1, GroupAction::kStep});
  worker.expect<PhaseDone>();  // it has reported
  const auto trial = folder.path() / "0a1b2_00007";
  std::filesystem::create_directories(trial / temporary_checkpoint_name(1, {1}));
  worker.send(GroupStep{1, GroupAction::kSave});
  CHECK(worker.expect<RankSaved>().iteration == 1);
  CHECK(read_text(trial / temporary_checkpoint_name(1, {1}) / "n") == "1\n");
  worker.send(GroupStep{2, GroupAction::kStep});
  worker.expect<PhaseDone>();
  worker.send(GroupStep{2, GroupAction::kEnd});
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
  CHECK_HAS(read_text(trial / "stdout.1"), "stopped at 2");
}

TEST_CASE("a hello counts before the words of rank 0's next step that come with it") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.ranks = 2;
  start.rank = 1;
  CommandProcess worker(shell("cd $TUNE_TRIAL_DIR; touch begun; "
                              "while ! test -e on; do sleep 0.01; done; "
                              "echo hello 1 >&$TUNE_FD; touch said; "
                              "echo '{\"x\": 1}' >&$TUNE_FD; read word <&$TUNE_FD; echo told $word; "
                              "echo '{\"x\": 2}' >&$TUNE_FD; read word <&$TUNE_FD; echo told $word"),
                        start);
  const auto trial = folder.path() / "0a1b2_00007";
  worker.expect<PhaseDone>();
  worker.send(GroupStep{1, GroupAction::kStep});
  wait_for(trial / "begun");
  ::kill(worker.pid(), SIGSTOP);  // so that both wait for it
  std::ofstream(trial / "on") << "\n";
  wait_for(trial / "said");
  worker.send(GroupStep{2, GroupAction::kStep});
  ::kill(worker.pid(), SIGCONT);
  worker.expect<PhaseDone>();
  worker.expect<PhaseDone>();
  worker.send(GroupStep{2, GroupAction::kEnd});
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
  CHECK_HAS(read_text(trial / "stdout.1"), "told go\ntold stop\n");
}

}  // namespace
}  // namespace tune
