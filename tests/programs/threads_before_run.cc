// A program that runs a thread when it calls tune::run: it cannot be forked there, so it is
// executed again for its agent and its trials. Whenever it forks, that thread holds the allocator's
// lock: a child forked there would wait in vain at its first allocation.
#include <tune/tune.h>

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <new>
#include <thread>

namespace {

pthread_mutex_t allocating = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> forks = false;
std::atomic<bool> holds = false;
std::atomic<bool> over = false;

void hold_while_it_forks() {
  while (!over) {
    if (forks) {
      pthread_mutex_lock(&allocating);
      holds = true;
      while (forks) std::this_thread::yield();
      pthread_mutex_unlock(&allocating);
      holds = false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

void before_fork() {
  forks = true;
  while (!holds) std::this_thread::yield();
}
void after_fork() {
  forks = false;
  while (holds) std::this_thread::yield();
}

}  // namespace

void* operator new(std::size_t size) {
  pthread_mutex_lock(&allocating);
  void* memory = std::malloc(size);
  pthread_mutex_unlock(&allocating);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// By libraries as well: a sanitizer's own would not fit the functions below.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  pthread_mutex_lock(&allocating);
  void* memory = std::malloc(size);
  pthread_mutex_unlock(&allocating);
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

int main(int argc, char** argv) {
  // Only in the process that a person started, which is the driver.
  std::thread holder;
  if (std::getenv("TUNE_PROGRAM_CALL") == nullptr) {
    holder = std::thread(hold_while_it_forks);
    pthread_atfork(before_fork, after_fork, nullptr);
  }
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::thread idle([&] {
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return done; });
  });
  int code = 0;
  try {
    const auto analysis = tune::run(
        [](const tune::Config& config, tune::Session& session) {
          for (int i = 0; i < 3; ++i) {
            if (!session.report({{"score", config.get<double>("x") * i}})) return;
          }
        },
        tune::options_from_args(argc, argv, {.name = "threads",
                                             .config = {{"x", tune::uniform(0, 1)}},
                                             .num_samples = 3,
                                             .metric = "score"}));
    std::cout << "trials: " << analysis.trials().size() << "\n";
  } catch (const tune::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    code = 2;
  }
  {
    std::lock_guard lock(mutex);
    done = true;
  }
  ended.notify_one();
  idle.join();
  over = true;
  if (holder.joinable()) holder.join();
  return code;
}
