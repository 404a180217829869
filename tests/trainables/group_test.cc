// Groups: no rank passes a step boundary before rank 0 says so. The test is the agent that passes
// rank 0's words on.
#include <chrono>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"
#include "trainables/worker_process.h"

using namespace tune;
using namespace tune::testing;

namespace {

class Member : public Trainable {
 public:
  void setup(const Config&) override {}
  Result step() override { return {{"rank", context().rank()}}; }
  void save(const std::filesystem::path& directory) override {
    std::ofstream(directory / ("rank" + std::to_string(context().rank()))) << context().iteration();
  }
  void load(const std::filesystem::path&) override {}
};

// A step that fails as a collective does.
class CutOff : public Member {
 public:
  Result step() override { throw Error(ErrorCode::kProcess, "all_reduce failed"); }
};

// A step that fails by itself.
class Unlucky : public Member {
 public:
  Result step() override { throw Error(ErrorCode::kIo, "no luck"); }
};

// A setup that waits for another rank.
class Patient : public Member {
 public:
  void setup(const Config&) override {
    while (is_another_alone().value()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

const TrainableEntry kMember = trainable_entry<Member>("Member");

StartWorker member_start(const std::filesystem::path& directory, std::uint32_t rank) {
  StartWorker start = start_in(directory);
  start.launch.ranks = 2;
  start.rank = start.local_rank = rank;
  return start;
}

void expect_step(const GroupStep& step, std::uint64_t iteration, GroupAction action) {
  CHECK(step.iteration == iteration);
  CHECK(step.action == action);
}

}  // namespace

TEST_CASE("rank 0 says step, save and end; only it reports") {
  TemporaryFolder folder;
  StartWorker start = member_start(folder.path(), 0);
  start.experiment.stop = {{"training_iteration", 2, false}};
  start.experiment.checkpoint = {.frequency = 0, .at_end = true, .keep = 1};
  WorkerProcess leader(kMember, start);
  leader.expect<PhaseDone>();
  expect_step(leader.expect<GroupStep>(), 1, GroupAction::kStep);
  leader.expect<Reported>();
  expect_step(leader.expect<GroupStep>(), 2, GroupAction::kStep);
  CHECK(leader.expect<Reported>().final);
  expect_step(leader.expect<GroupStep>(), 2, GroupAction::kSave);
  CHECK(leader.expect<RankSaved>().iteration == 2);
  expect_step(leader.expect<GroupStep>(), 2, GroupAction::kEnd);
  CHECK(leader.expect<WorkerEnded>().outcome == Outcome::kCompleted);
}

TEST_CASE("another rank does what rank 0 says and writes into the same checkpoint") {
  TemporaryFolder folder;
  WorkerProcess follower(kMember, member_start(folder.path(), 1));
  const auto shared = folder.path() / "0a1b2_00007" / ".checkpoint_000001.tmp-1";
  std::filesystem::create_directories(shared);
  std::ofstream(shared / "rank0") << "1";
  follower.expect<PhaseDone>();  // setup
  follower.send(GroupStep{1, GroupAction::kStep});
  follower.expect<PhaseDone>();  // step 1
  follower.send(GroupStep{1, GroupAction::kSave});
  CHECK(follower.expect<RankSaved>().iteration == 1);
  CHECK(read_text(shared / "rank0") == "1");
  CHECK(read_text(shared / "rank1") == "1");
  CHECK(follower.says_nothing());
  follower.send(GroupStep{2, GroupAction::kStep});
  follower.send(GroupStep{2, GroupAction::kEnd});
  follower.expect<PhaseDone>();
  CHECK(follower.expect<WorkerEnded>().outcome == Outcome::kCompleted);
  CHECK(std::filesystem::exists(folder.path() / "0a1b2_00007/stdout.1"));
}

TEST_CASE("a rank that goes on from a checkpoint says when it is set up and when it has loaded") {
  TemporaryFolder folder;
  StartWorker start = member_start(folder.path(), 1);
  start.launch.restore_iteration = 4;
  std::filesystem::create_directories(folder.path() / "0a1b2_00007" / "checkpoint_000004");
  WorkerProcess follower(kMember, start);
  follower.expect<PhaseDone>();
  follower.expect<PhaseDone>();
  CHECK(follower.says_nothing());
}

TEST_CASE("a rank that is not where rank 0 is says so") {
  TemporaryFolder folder;
  WorkerProcess follower(kMember, member_start(folder.path(), 1));
  follower.send(GroupStep{1, GroupAction::kStep});
  follower.send(GroupStep{3, GroupAction::kStep});
  follower.expect<PhaseDone>();
  follower.expect<PhaseDone>();
  const auto ended = follower.expect<WorkerEnded>();
  CHECK(ended.outcome == Outcome::kException);
  CHECK(ended.cause.find("rank 1 has done 1 steps when rank 0 begins step 3") == 0);
}

TEST_CASE("rank 0 stays at a step boundary while its group is held") {
  TemporaryFolder folder;
  StartWorker start = member_start(folder.path(), 0);
  start.launch.until = {"training_iteration", 1};
  WorkerProcess leader(kMember, start);
  leader.expect<PhaseDone>();
  leader.expect<GroupStep>();
  CHECK(leader.expect<Reported>().waiting);
  leader.send(HoldGroup{true});
  leader.send(Continue{{7}, {1}, {"training_iteration", 2}});
  CHECK(leader.says_nothing());
  SUBCASE("and goes on after it") {
    leader.send(HoldGroup{false});
    expect_step(leader.expect<GroupStep>(), 2, GroupAction::kStep);
  }
  SUBCASE("but can be stopped there") {
    leader.send(StopAttempt{{7}, {1}, StopKind::kStop, {}});
    expect_step(leader.expect<GroupStep>(), 1, GroupAction::kEnd);
  }
}

TEST_CASE("a pause of a group saves on all ranks before it ends") {
  TemporaryFolder folder;
  StartWorker start = member_start(folder.path(), 0);
  start.launch.until = {"training_iteration", 1};
  WorkerProcess leader(kMember, start);
  leader.expect<PhaseDone>();
  leader.expect<GroupStep>();
  CHECK(leader.expect<Reported>().waiting);
  leader.send(StopAttempt{{7}, {1}, StopKind::kPause, {}});
  expect_step(leader.expect<GroupStep>(), 1, GroupAction::kSave);
  leader.expect<RankSaved>();
  expect_step(leader.expect<GroupStep>(), 1, GroupAction::kEnd);
  CHECK(leader.expect<WorkerEnded>().outcome == Outcome::kPaused);
}

TEST_CASE("an exception says whether it is of the group") {
  const auto last_word_of = [](const TrainableEntry& entry) {
    TemporaryFolder folder;
    WorkerProcess follower(entry, member_start(folder.path(), 1));
    follower.expect<PhaseDone>();
    follower.send(GroupStep{1, GroupAction::kStep});
    return follower.expect<WorkerEnded>();
  };
  const WorkerEnded cut_off = last_word_of(trainable_entry<CutOff>("CutOff"));
  CHECK(cut_off.cause == "step: all_reduce failed");
  CHECK(cut_off.is_of_group);
  const WorkerEnded unlucky = last_word_of(trainable_entry<Unlucky>("Unlucky"));
  CHECK(unlucky.cause == "step: no luck");
  CHECK_FALSE(unlucky.is_of_group);
}

TEST_CASE("a rank asks its agent who is alone, one question at a time, and keeps what comes else") {
  TemporaryFolder folder;
  const TrainableEntry entry = trainable_entry<Patient>("Patient");
  WorkerProcess follower(entry, member_start(folder.path(), 1));
  follower.expect<AskAlone>();
  follower.send(GroupStep{1, GroupAction::kStep});
  follower.send(OthersAlone{true});
  follower.expect<AskAlone>();
  follower.send(OthersAlone{false});
  follower.expect<AskAlone>();   // answered too late
  follower.expect<PhaseDone>();  // setup
  follower.send(OthersAlone{true});
  follower.expect<PhaseDone>();  // step 1
  follower.send(GroupStep{1, GroupAction::kEnd});
  CHECK(follower.expect<WorkerEnded>().outcome == Outcome::kCompleted);
}

TEST_CASE("of one rank no other can be alone") {
  TemporaryFolder folder;
  const TrainableEntry entry = trainable_entry<Patient>("Patient");
  WorkerProcess worker(entry, start_in(folder.path()));
  CHECK_HAS(worker.expect<WorkerEnded>().cause, "bad optional access");
}
