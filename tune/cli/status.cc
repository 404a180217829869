#include "tune/cli/status.h"

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/node.h"
#include "core/platform/redis_server.h"
#include "core/platform/redis_store.h"
#include "core/platform/runtime_directory.h"
#include "core/platform/system_clock.h"
#include "tune/control/experiment_setup.h"
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

RedisStoreOptions reader_options(const RunRecord& record) {
  RedisStoreOptions options;
  options.address = record.store;
  options.prefix = record.prefix;
  options.unsafe = true;  // reading needs no durability
  options.timeout = kStorePatience;
  return options;
}

// Follows the experiment until it is over or its driver is gone. A private store goes with its
// driver.
void follow(const std::filesystem::path& directory, const RunRecord& record) try {
  RedisStore store(reader_options(record));
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

// A server reads a copy: looking takes no lock and writes nothing, so everyone who may read the
// folder may look.
void copy_journal(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive, error);
  if (!error) return;
  throw Error(ErrorCode::kIo, fmt::format("copying the journal from {} to {}: {}", from.string(),
                                          to.string(), error.message()));
}

}  // namespace

int show_status(const std::filesystem::path& directory) {
  if (read_spec(directory).options.scheduler.name().empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: its scheduler is the program's own, so the journal cannot be read "
                            "without it: see {}/results.csv, or `tune results`",
                            directory.string(), directory.string()));
  }
  std::optional<RunRecord> record = read_record(directory);
  if (!record) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: the experiment has not begun yet", directory.string()));
  }
  if (is_live(directory)) follow(directory, *record);
  const RuntimeDirectory runtime;
  std::unique_ptr<RedisServer> server;
  if (read_spec(directory).options.store.empty()) {
    RedisServerOptions options;
    options.runtime_directory = runtime.path();
    options.data_directory = runtime.path() / "store";
    copy_journal(directory / "store", options.data_directory);
    server = std::make_unique<RedisServer>(options);
    record->store = server->address();
  }
  RedisStoreOptions reader = reader_options(*record);
  reader.timeout = RedisStoreOptions().timeout;
  RedisStore store(reader);
  Follower follower(directory, store);
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
