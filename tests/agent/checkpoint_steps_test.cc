// Checkpoints are transactions: the process that writes one may be killed at any step, and what has
// a checkpoint's name is whole.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "core/agent/checkpoint_files.h"
#include "core/error.h"
#include "every_step.h"
#include "file_calls.h"
#include "skip.h"
#include "trainables/checkpoint_folder.h"
#include "trainables/temporary_folder.h"

namespace fs = std::filesystem;
using namespace tune;
using namespace tune::testing;

namespace {

CheckpointSaved third_iteration() {
  CheckpointSaved saved;
  saved.attempt = AttemptNumber{2};
  saved.iteration = 3;
  return saved;
}

// The checkpoint of a trainable of two files.
void write_model(const fs::path& folder, const std::string& content) {
  std::ofstream(folder / "config.json") << content;
  fs::create_directory(folder / "model");
  std::ofstream(folder / "model/weights") << std::string(10000, content[0]);
}

bool is_whole(const fs::path& folder, const std::string& content) {
  return read_text(folder / "config.json") == content &&
         read_text(folder / "model/weights") == std::string(10000, content[0]);
}

// Two folders; of each of two files that it is made and written; the flush of all four.
constexpr int kCallsOfSave = 2 + 2 * 2 + 4;

// The worker's part, then the agent's.
void save(const fs::path& trial, const std::string& content) {
  const CheckpointSaved saved = third_iteration();
  const fs::path folder = trial / temporary_checkpoint_name(saved.iteration, saved.attempt);
  make_fresh_folder(folder);
  write_model(folder, content);
  flush_checkpoint(folder);
  promote_checkpoint(trial, saved);
}

// From now on this process is on a file system that cannot do this.
void forbid(std::uint32_t call) {
  std::array<sock_filter, 4> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{filter.size(), filter.data()};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

std::size_t entries_of(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a save killed at any step leaves a whole checkpoint or none") {
  const TemporaryFolder folder;
  const fs::path trial = folder.path() / "trial";
  const fs::path checkpoint = trial / checkpoint_name(3, AttemptNumber{2});
  int whole = 0;
  const int steps = kill_at_every_step({.folder = folder.path(),
                                        .prepare =
                                            [&] {
                                              fs::remove_all(trial);
                                              fs::create_directory(trial);
                                            },
                                        .body = [&] { save(trial, "new"); },
                                        .check =
                                            [&](bool killed) {
                                              const bool there = fs::exists(checkpoint);
                                              whole += there ? 1 : 0;
                                              CHECK((there || killed));
                                              if (there) CHECK(is_whole(checkpoint, "new"));
                                              remove_half_written(trial, AttemptNumber{2});
                                              CHECK(entries_of(trial) == (there ? 1 : 0));
                                            }});
  if (steps == 0) return;
  CHECK(steps >= 2 * kCallsOfSave);
  CHECK(whole == 4);  // after the rename, before and after the flush, and the one not killed
}

TEST_CASE("a checkpoint is on the disk before it has its name, and its name when it is promoted") {
  const TemporaryFolder folder;
  const fs::path trial = fs::canonical(folder.path()) / "trial";
  fs::create_directory(trial);
  for (const char* content : {"old", "new"}) {  // to a free name, and in another's place
    CAPTURE(content);
    Unflushed unflushed;
    std::set<fs::path> flushed;
    const Watched outcome =
        watch_file_calls_of([&] { save(trial, content); }, trial,
                            [&](const FileCall& call) {
                              unflushed.note(call);
                              if (call.done && call.kind == FileCall::Kind::kFlush) {
                                flushed.insert(call.path.lexically_relative(trial));
                              }
                              return true;
                            });
    if (outcome == Watched::kNotTraced) return skip("processes may not be traced here");
    CHECK(is_whole(trial / checkpoint_name(3, AttemptNumber{2}), content));
    CHECK(listed(unflushed.renamed_too_early()) == "");
    CHECK(listed(unflushed.at_or_below(trial / checkpoint_name(3, AttemptNumber{2}))) == "");
    CHECK(listed(unflushed.names()) == "");
    const fs::path fresh = temporary_checkpoint_name(3, AttemptNumber{2});
    CHECK(listed(flushed) ==
          listed({".", fresh, fresh / "config.json", fresh / "model", fresh / "model/weights"}));
  }
}

TEST_CASE("a checkpoint that nobody flushed would be noticed, file by file") {
  const TemporaryFolder folder;
  const fs::path trial = fs::canonical(folder.path());
  const fs::path fresh = trial / temporary_checkpoint_name(3, AttemptNumber{2});
  Unflushed unflushed;
  const auto save_unflushed = [&] {
    make_fresh_folder(fresh);
    write_model(fresh, "new");
    fs::rename(fresh, trial / checkpoint_name(3, AttemptNumber{2}));
  };
  const Watched outcome = watch_file_calls_of(save_unflushed, trial, [&](const FileCall& call) {
    unflushed.note(call);
    return true;
  });
  if (outcome == Watched::kNotTraced) return skip("processes may not be traced here");
  CHECK(listed(unflushed.renamed_too_early()) ==
        listed({fresh, fresh / "config.json", fresh / "model", fresh / "model/weights"}));
  CHECK(unflushed.at_or_below(trial / checkpoint_name(3, AttemptNumber{2})).size() == 4);
  CHECK(listed(unflushed.names()) == listed({trial / checkpoint_name(3, AttemptNumber{2})}));
}

TEST_CASE("a save that takes another's place, killed at any step, leaves the old or the new one") {
  const TemporaryFolder folder;
  const fs::path trial = folder.path() / "trial";
  const fs::path checkpoint = trial / checkpoint_name(3, AttemptNumber{2});
  int old = 0;
  int fresh = 0;
  const int steps = kill_at_every_step(
      {.folder = folder.path(),
       .prepare =
           [&] {
             fs::remove_all(trial);
             fs::create_directories(checkpoint);
             write_model(checkpoint, "old");
             // And what an earlier kill left of this attempt.
             fs::create_directory(trial / temporary_checkpoint_name(3, AttemptNumber{2}));
           },
       .body = [&] { save(trial, "new"); },
       .check =
           [&](bool killed) {
             const bool is_new = is_whole(checkpoint, "new");
             CHECK((is_new || is_whole(checkpoint, "old")));
             CHECK((is_new || killed));
             ++(is_new ? fresh : old);
             remove_half_written(trial, AttemptNumber{2});
             CHECK(entries_of(trial) == 1);
           }});
  if (steps == 0) return;
  CHECK(old >= 2 * kCallsOfSave);
  CHECK(fresh > 4 + 4);  // the former one's two files and two folders are removed after the swap
}

TEST_CASE("without a swap of names, a kill leaves the old one, none or the new one, never a part") {
  const TemporaryFolder folder;
  const fs::path trial = folder.path() / "trial";
  const fs::path checkpoint = trial / checkpoint_name(3, AttemptNumber{2});
  int none = 0;
  const int steps =
      kill_at_every_step({.folder = folder.path(),
                          .prepare =
                              [&] {
                                fs::remove_all(trial);
                                fs::create_directories(checkpoint);
                                write_model(checkpoint, "old");
                              },
                          .body =
                              [&] {
                                forbid(SYS_renameat2);  // as NFS does
                                save(trial, "new");
                              },
                          .check =
                              [&](bool killed) {
                                const bool there = fs::exists(checkpoint);
                                none += there ? 0 : 1;
                                const bool is_new = is_whole(checkpoint, "new");
                                CHECK((!there || is_new || is_whole(checkpoint, "old")));
                                CHECK((is_new || killed));
                                remove_half_written(trial, AttemptNumber{2});
                                CHECK(entries_of(trial) == (there ? 1 : 0));
                              }});
  if (steps == 0) return;
  CHECK(none == 2);  // between the two renames: after the first, before the second
}

TEST_CASE(
    "a file that cannot be flushed is an error, a folder for which there is no flush is not") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "model");
  const auto is_refused_without_flush = [&] {
    const pid_t child = ::fork();
    if (child == 0) {
      forbid(SYS_fsync);
      try {
        flush_checkpoint(folder.path());
      } catch (const Error&) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status != 0;
  };
  CHECK_FALSE(is_refused_without_flush());
  std::ofstream(folder.path() / "model/weights") << "w";
  CHECK(is_refused_without_flush());
}

TEST_CASE("a removal killed at any step leaves a whole checkpoint or none, and is done again") {
  const TemporaryFolder folder;
  const fs::path trial = folder.path() / "trial";
  const std::string name = checkpoint_name(3, AttemptNumber{2});
  const fs::path checkpoint = trial / name;
  for (const bool by_retention : {true, false}) {
    const auto remove = [&] {
      if (by_retention) return remove_checkpoint(trial, {3, {2}});
      remove_unrecorded(trial, {}, AttemptNumber{2});
    };
    int none = 0;
    const int steps = kill_at_every_step({.folder = folder.path(),
                                          .prepare =
                                              [&] {
                                                fs::remove_all(trial);
                                                fs::create_directories(checkpoint);
                                                write_model(checkpoint, "old");
                                                // And what an earlier kill left of another removal.
                                                fs::create_directories(
                                                    trial / removed_checkpoint_name(name) /
                                                    "model");
                                              },
                                          .body = remove,
                                          .check =
                                              [&](bool killed) {
                                                const bool there = fs::exists(checkpoint);
                                                none += there ? 0 : 1;
                                                CHECK((!there || killed));
                                                CHECK((!there || is_whole(checkpoint, "old")));
                                                remove_unrecorded(trial, {}, AttemptNumber{2});
                                                CHECK(entries_of(trial) == 0);
                                              }});
    if (steps == 0) return;
    CHECK(none > 4);  // killed after the rename
    CHECK(none < steps);
  }
}

namespace {

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

CheckpointRecord recorded(std::uint64_t iteration, std::uint32_t attempt) {
  CheckpointRecord record;
  record.iteration = iteration;
  record.attempt = AttemptNumber{attempt};
  return record;
}

}  // namespace

TEST_CASE("what lost attempts left goes; what is recorded, and what a later attempt saves, stays") {
  const TemporaryFolder folder;
  const fs::path trial = folder.path();
  const std::set<std::string> stays = {
      "checkpoint_000002",         // recorded, of a build whose names did not hold the attempt
      "checkpoint_000004-a2",      // recorded
      "checkpoint_000006-a3",      // of an attempt that may live
      ".checkpoint_000008.tmp-3",  // it saves
      ".checkpoint_old.tmp-3",    "checkpoint_best", "result.json"};  // the user's
  const std::set<std::string> goes = {"checkpoint_000004",          "checkpoint_000006",
                                      "checkpoint_000006-a2",       ".checkpoint_old.tmp-2",
                                      ".checkpoint_000008.tmp-2",   ".checkpoint_000008.tmp-1",
                                      ".checkpoint_000002.tmp-gone"};
  for (const auto& names : {stays, goes}) {
    for (const std::string& name : names) fs::create_directories(trial / name / "model");
  }
  remove_unrecorded(trial, {recorded(2, 0), recorded(4, 2)}, AttemptNumber{2});
  CHECK(names_in(trial) == stays);
  remove_unrecorded(trial / "not there", {}, AttemptNumber{9});  // a trial that never ran
}

// The older one stood still with removals to be done, while the newer one started the trial again.
TEST_CASE("a driver that another has overtaken removes nothing of what that one has recorded") {
  const TemporaryFolder folder;
  const fs::path trial = folder.path();
  save(trial, "new");  // by attempt 2, of the newer driver
  fs::create_directory(trial / temporary_checkpoint_name(6, AttemptNumber{2}));
  const std::set<std::string> before = names_in(trial);
  remove_checkpoint(trial, {3, AttemptNumber{1}});  // that of its own attempt was superfluous
  remove_checkpoint(trial, {3, AttemptNumber{}});   // so it was to an earlier build
  remove_unrecorded(trial, {}, AttemptNumber{1});   // it took over, and knew of no checkpoint
  CHECK(names_in(trial) == before);
  CHECK(is_whole(trial / checkpoint_name(3, AttemptNumber{2}), "new"));
}
