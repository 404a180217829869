#include "tune/view/importance_desk.h"

#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/platform/deaf_thread.h"
#include "tune/results/analysis.h"
#include "tune/results/importance_value.h"

namespace tune::view {

namespace {

constexpr std::size_t kMostKept = 64;  // experiments
constexpr int kNice = 10;

Value found_in(const std::filesystem::path& directory) {
  try {
    return Value{{"importance", to_value(Analysis::load(directory).importance())}};
  } catch (const std::exception& error) {  // too few trials, say
    return Value{{"problem", error.what()}};
  }
}

}  // namespace

class ImportanceDesk::Inside {
 public:
  Inside() : thread_(deaf_thread([this] { work(); })) {}
  ~Inside() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  Value ask(const std::string& key, const std::filesystem::path& directory, std::uint64_t change) {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(key);
    const bool is_current = known != known_.end() && known->second.at == change;
    if (!is_current) {
      wanted_ = Wanted{key, directory, change};
      changed_.notify_all();
    }
    Value told = known == known_.end() ? Value::make_map() : known->second.told;
    told.set("is_current", is_current);
    return told;
  }

 private:
  struct Wanted {
    std::string key;
    std::filesystem::path directory;
    std::uint64_t change = 0;
  };
  struct Known {
    std::uint64_t at = 0;
    Value told;
  };

  // It reads all files again, which takes seconds: whoever opens the page meanwhile comes first.
  void work() {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || wanted_; });
      if (ends_) return;
      const Wanted wanted = *std::exchange(wanted_, std::nullopt);
      lock.unlock();
      Value told = found_in(wanted.directory);
      lock.lock();
      if (known_.size() >= kMostKept) known_.clear();
      known_.insert_or_assign(wanted.key, Known{wanted.change, std::move(told)});
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Known> known_;  // by experiment
  std::optional<Wanted> wanted_;        // the newest question
  bool ends_ = false;
  std::thread thread_;  // last: it uses the others
};

ImportanceDesk::ImportanceDesk() : inside_(std::make_unique<Inside>()) {}
ImportanceDesk::~ImportanceDesk() = default;

Value ImportanceDesk::ask(const std::string& key, const std::filesystem::path& directory,
                          std::uint64_t change) {
  return inside_->ask(key, directory, change);
}

}  // namespace tune::view
