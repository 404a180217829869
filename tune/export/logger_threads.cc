#include "tune/export/logger_threads.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/platform/deaf_thread.h"

namespace tune {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{1000};
constexpr milliseconds kLastPatience{1000};  // for a thread that was told to end where it is
constexpr int kNice = 10;                    // workers and the driver go first

}  // namespace

struct LoggerThreads::Shared {
  Logger logger;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> notices;
  bool files_are_complete = false;
  std::atomic<bool> gives_up = false;
  bool is_over = false;
  std::thread thread = {};

  std::string said(const std::string& text) const {
    return fmt::format("logger {}: {}", logger.name, text);
  }
  std::string failed(const char* why) const {
    return said(fmt::format("{}; the sweep goes on without it{}", why, rest()));
  }
  void keep(std::string notice) {
    const std::lock_guard lock(mutex);
    notices.push_back(std::move(notice));
  }
  // False: this was the last look.
  bool wait_for_next() {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kLookEvery, [this] { return files_are_complete || gives_up; });
    return !gives_up;
  }
  bool looks_last() {
    const std::lock_guard lock(mutex);
    return files_are_complete;
  }
  std::string rest() const {
    return logger.remedy.empty() ? "" : fmt::format("; {} writes the rest", logger.remedy);
  }
};

void LoggerThreads::work(Shared& shared) {
  // Of this thread alone, on Linux.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  const auto ends = [&shared] { return shared.gives_up.load(); };
  try {
    const std::unique_ptr<Exporter> exporter = shared.logger.make();
    while (!shared.gives_up) {
      const bool is_last = shared.looks_last();
      exporter->write_news(ends);
      for (const std::string& problem : exporter->take_problems()) {
        shared.keep(shared.said(problem));
      }
      if (is_last && !shared.gives_up) {
        exporter->finish();
        break;
      }
      if (!shared.wait_for_next()) break;
    }
  } catch (const std::exception& error) {
    shared.keep(shared.failed(error.what()));
  }
}

void LoggerThreads::start(Logger logger) {
  const auto shared = std::make_shared<Shared>();
  shared->logger = std::move(logger);
  try {
    shared->thread = deaf_thread([shared] {
      work(*shared);
      const std::lock_guard lock(shared->mutex);
      shared->is_over = true;
      shared->changed.notify_all();
    });
    threads_.push_back(shared);
  } catch (const std::exception& error) {
    notices_.push_back(shared->failed(error.what()));
  }
}

std::vector<std::string> LoggerThreads::take_notices() {
  std::vector<std::string> all = std::exchange(notices_, {});
  for (const auto& shared : threads_) {
    const std::lock_guard lock(shared->mutex);
    std::move(shared->notices.begin(), shared->notices.end(), std::back_inserter(all));
    shared->notices.clear();
  }
  return all;
}

void LoggerThreads::finish(milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (const auto& shared : threads_) {
    const std::lock_guard lock(shared->mutex);
    if (limit.count() > 0) {
      shared->files_are_complete = true;
    } else {
      shared->gives_up = true;
    }
    shared->changed.notify_all();
  }
  for (const auto& shared : threads_) {
    std::unique_lock lock(shared->mutex);
    const auto is_over = [&] { return shared->is_over; };
    const bool in_time = shared->changed.wait_until(lock, end, is_over);
    shared->gives_up = true;
    shared->changed.notify_all();
    if (!in_time && limit.count() > 0) {
      shared->notices.push_back(
          shared->said(fmt::format("it has not done all within {:g} s{}",
                                   static_cast<double>(limit.count()) / 1000, shared->rest())));
    }
    const bool has_ended = shared->changed.wait_for(lock, kLastPatience, is_over);
    lock.unlock();
    has_ended ? shared->thread.join() : shared->thread.detach();
  }
  notices_ = take_notices();
  threads_.clear();
}

}  // namespace tune
