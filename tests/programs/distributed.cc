// Runs a Distributor as its first argument says.
#include <tune/tune.h>

#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/rank_start.h"
#include "rank_variables.h"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "(not set)";
}

void wait_for(const char* file) {
  while (!std::ifstream(file)) usleep(1000);
}

const tune::Distributor kTwo{.num_processes = 2, .use_gpu = false};

void environment() {
  kTwo.run([](const tune::RankContext& rank) {
    std::cout << rank.rank() << "/" << rank.world_size() << " " << variable("RANK")
              << variable("LOCAL_RANK") << variable("WORLD_SIZE") << variable("LOCAL_WORLD_SIZE")
              << variable("GROUP_RANK") << " " << variable("MASTER_ADDR") << " ["
              << variable("CUDA_VISIBLE_DEVICES") << "] "
              << (variable("TUNE_RENDEZVOUS_FD") == "(not set)" ? "connects" : "listens") << "\n";
  });
}

// In a rank that `tune launch` started.
void launched() {
  std::cout << tune::testing::rank_variables_seen(std::stoi(variable("RANK")), 2) << "\n";
}

void variables() {
  kTwo.run([](const tune::RankContext& rank) {
    std::cout << tune::testing::rank_variables_seen(rank.rank(), 2) << "\n";
  });
}

void values() {
  const std::vector<double> numbers(100'000, 0.1);
  double sum = kTwo.run(
      [&numbers](int factor, const std::string& name) {
        double total = 0;
        for (const double number : numbers) total += number;
        return total * factor + static_cast<double>(name.size());
      },
      2, "four");
  std::cout << std::round(sum) << "\n";
  std::cout << (kTwo.run([&] { return numbers; }) == numbers) << "\n";  // larger than a packet
  std::cout << kTwo.run([] { return "text"; }) << "\n";
  std::cout << kTwo.run([] { return variable("RANK") == "0"; }) << "\n";
  std::cout << kTwo.run([] {
                     return tune::Config{{"lr", 0.5}, {"list", {{"a", 1}}}};
                   })
                   .dump()
            << "\n";
}

void named_results() {
  const tune::Distributor distributor{
      .num_processes = 2,
      .use_gpu = false,
      .folder = "handed",
      .on_result = [](const std::string& name, const std::filesystem::path& file) {
        std::string text;
        std::getline(std::ifstream(file), text);
        std::cout << name << " holds " << text << "\n";
        std::ofstream(name.substr(name.rfind('/') + 1) + ".heard");
      }};
  distributor.run([](const tune::RankContext& rank) {
    const std::string name = std::to_string(rank.rank());
    rank.results().submit("worker/" + name, "of rank " + name);
    wait_for((name + ".heard").c_str());  // so the caller hears it while this runs
    try {
      rank.results().submit("../" + name, "x");
    } catch (const tune::Error& error) {
      std::cout << error.what() << "\n";
    }
  });
}

void submit_in_trial() {
  tune::at_rank_start([] { std::ofstream("prepared.of." + variable("WORLD_SIZE")); });
  const auto analysis = tune::run(
      [](const tune::Config&, tune::Session& session) {
        session.context().results().submit("worker/0/data.json", "{}");
        session.report({{"score", 1.0}});
      },
      {.name = "trials", .metric = "score", .quiet = true});
  std::cout << analysis.trials().size() << "\n";
}

void threads() {
  std::mutex mutex;
  std::condition_variable over;
  bool done = false;
  std::thread idle([&] {
    std::unique_lock lock(mutex);
    over.wait(lock, [&] { return done; });
  });
  const auto join = [&] {
    {
      const std::lock_guard lock(mutex);
      done = true;
    }
    over.notify_one();
    idle.join();
  };
  try {
    kTwo.run([] {});
  } catch (...) {
    join();
    throw;
  }
  join();
}

void throwing_listener() {
  tune::Distributor distributor = kTwo;
  distributor.folder = "handed";
  distributor.on_result = [](const std::string&, const std::filesystem::path&) {
    throw std::runtime_error("the listener threw");
  };
  distributor.run([](const tune::RankContext& rank) {
    while (true) rank.results().submit("x", "y");
  });
}

void hang_after_failure() {
  kTwo.run([](const tune::RankContext& rank) {
    if (rank.rank() == 1) throw std::runtime_error("disk full");
    signal(SIGTERM, SIG_IGN);
    while (true) pause();
  });
}

// Rank 0 hears of the end of rank 1 before the other processes do.
void fails_by_another() {
  kTwo.run([](const tune::RankContext& rank) {
    if (rank.rank() == 0) {
      std::ofstream("gone");
      throw tune::Error(tune::ErrorCode::kProcess, "connection closed by peer");
    }
    wait_for("gone");
    _exit(5);
  });
}

void ready_and_hang() {
  kTwo.run([](const tune::RankContext& rank) {
    std::ofstream("ready." + std::to_string(rank.rank()));
    while (true) pause();
  });
}

const std::map<std::string, void (*)()> kModes = {
    {"environment", environment},
    {"launched", launched},
    {"variables", variables},
    {"values", values},
    {"named_results", named_results},
    {"submit_in_trial", submit_in_trial},
    {"threads", threads},
    {"throwing_listener", throwing_listener},
    {"hang_after_failure", hang_after_failure},
    {"fails_by_another", fails_by_another},
    {"ready_and_hang", ready_and_hang},
    {"killed", [] { kTwo.run([] { raise(SIGSEGV); }); }},
    {"exits", [] { kTwo.run([] { _exit(5); }); }},
    {"ends_early", [] { kTwo.run([] { _exit(0); }); }},
    {"no_folder",
     [] { kTwo.run([](const tune::RankContext& rank) { rank.results().submit("a", "b"); }); }},
    {"no_process", [] { tune::Distributor{.num_processes = 0, .use_gpu = false}.run([] {}); }},
    {"no_nodes", [] { tune::Distributor{.num_processes = 2, .local_mode = false}.run([] {}); }},
    {"own_gpu",
     [] {
       tune::at_rank_start(
           [] { std::cout << "prepared to see " << variable("CUDA_VISIBLE_DEVICES") << "\n"; });
       const tune::Distributor two{2, true, true};
       two.run([](const tune::RankContext&) {
         std::cout << variable("CUDA_VISIBLE_DEVICES") << " of which "
                   << variable("TUNE_DEVICE_INDEX") << "\n";
       });
     }},
    {"gpus",
     [] {
       const tune::Distributor three{3, true, true};
       std::cout << three.run([](const tune::RankContext& rank) { return rank.world_size(); })
                 << "\n";
     }},
};

}  // namespace

int main(int, char** argv) {
  try {
    kModes.at(argv[1])();
  } catch (const tune::RankError& error) {
    std::cerr << "rank error of " << error.rank() << ": " << error.what() << "\n";
    return 4;
  } catch (const tune::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "exception: " << error.what() << "\n";
    return 5;
  }
  return 0;
}
