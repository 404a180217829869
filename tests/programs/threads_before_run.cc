// A program that runs a thread when it calls tune::run: it cannot be forked there, so it is executed
// again for its trials.
#include <tune/tune.h>

#include <condition_variable>
#include <iostream>
#include <mutex>
#include <thread>

int main(int argc, char** argv) {
  std::mutex mutex;
  std::condition_variable over;
  bool done = false;
  std::thread idle([&] {
    std::unique_lock lock(mutex);
    over.wait(lock, [&] { return done; });
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
  over.notify_one();
  idle.join();
  return code;
}
