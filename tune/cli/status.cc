#include "tune/cli/status.h"

#include <chrono>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/node.h"
#include "core/platform/redis_store.h"
#include "core/platform/system_clock.h"
#include "tune/control/experiment_setup.h"
#include "tune/drive/journal_reader.h"
#include "tune/drive/journaled_controller.h"
#include "tune/results/experiment_folder.h"
#include "tune/results/experiment_status.h"
#include "tune/show/console_reporter.h"

namespace tune {

namespace {

constexpr std::chrono::milliseconds kLookEvery{500};
constexpr std::chrono::seconds kStorePatience{2};
constexpr std::chrono::seconds kDriverEnd{30};  // of a driver that is ending

// A reader's own fold of the journal.
class Follower {
 public:
  Follower(const std::filesystem::path& directory, Store& store)
      : directory_(directory),
        spec_(read_spec(directory)),
        experiment_(store, controller_setup(spec_, std::filesystem::absolute(directory)), nullptr),
        reporter_(spec_.options.reporter) {}

  void catch_up() { experiment_.replay(); }
  bool is_over() const { return experiment_.controller().is_over(); }

  void notice(const std::string& text) { reporter_.notice(text); }

  void show(bool live, bool final) {
    ExperimentStatus status = experiment_status(spec_, experiment_.controller());
    status.running_for = experiment_.now();
    status.wall = SystemClock().wall();
    const MemoryUse memory = memory_use();
    status.memory_used_bytes = memory.used_bytes;
    status.memory_total_bytes = memory.total_bytes;
    status.directory = directory_;
    status.live = live;
    reporter_.status(status, final);
  }

 private:
  std::filesystem::path directory_;
  ExperimentSpec spec_;
  JournaledController experiment_;
  ConsoleReporter reporter_;
};

// Follows the experiment until it is over or its driver is gone. A private store goes with its
// driver.
void follow(const std::filesystem::path& directory, const RunRecord& record) try {
  RedisStoreOptions options = reader_options(record);
  options.timeout = kStorePatience;
  RedisStore store(options);
  Follower follower(directory, store);
  while (is_live(directory)) {
    follower.catch_up();
    if (follower.is_over()) return;
    follower.show(true, false);
    std::this_thread::sleep_for(kLookEvery);
  }
} catch (const Error&) {
  const auto end = std::chrono::steady_clock::now() + kDriverEnd;
  while (is_live(directory)) {
    if (std::chrono::steady_clock::now() > end) throw;  // it lives, but its store cannot be read
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace

int show_status(const std::filesystem::path& directory) {
  if (read_spec(directory).options.scheduler.name().empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: its scheduler is the program's own, so the journal cannot be read "
                            "without it: see {}/results.csv, or `tune results`",
                            directory.string(), directory.string()));
  }
  const std::optional<RunRecord> record = read_record(directory);
  if (!record) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: the experiment has not begun yet", directory.string()));
  }
  if (is_live(directory)) follow(directory, *record);
  JournalReader journal(directory, JournalReader::From::kCopy);
  Follower follower(directory, journal.store());
  follower.catch_up();
  follower.show(false, true);
  if (!follower.is_over() && !is_live(directory)) {
    follower.notice(
        fmt::format("no driver holds it (the last was process {} on {}); resume it with: {}",
                    record->driver_pid, record->hostname, how_to_resume(directory)));
  }
  return 0;
}

}  // namespace tune
