// Faulty (trainables/synthetic/faulty.cc) as a program of its own, for the tests that every kind of
// trainable passes. It knows of tune by one header and by what its environment says.
//
//   faulty_command two_way   reads the answers to its reports, and goes on from what it saved
//   faulty_command one_way   prints its reports and reads nothing
#define TUNE_REPORT_IMPLEMENTATION
#include "trainables/command/tune_report.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string variable(const char* name, const std::string& otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : otherwise;
}

int number(const char* name, int otherwise) {
  return std::stoi(variable(name, std::to_string(otherwise)));
}

// The words of `step`, or of `["step","load"]`.
std::vector<std::string> words_of(const std::string& text) {
  if (!text.starts_with('[')) return {text};
  std::vector<std::string> words;
  for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
    const std::size_t end = text.find('"', at + 1);
    words.push_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return words;
}

struct Order {
  std::vector<std::string> where = words_of(variable("TUNE_PARAM_fail_in", "none"));
  std::string how = variable("TUNE_PARAM_fail_how", "throw");
  int at = number("TUNE_PARAM_fail_at", 1);
  int failing_rank = number("TUNE_PARAM_fail_rank", -1);
  int step_ms = number("TUNE_PARAM_step_ms", 0);
  std::size_t attempt = static_cast<std::size_t>(number("TUNE_ATTEMPT", 1));
  int rank = number("RANK", 0);

  bool fails_in(const std::string& here) const {
    return attempt <= where.size() && where[attempt - 1] == here;
  }
  bool is_mine() const { return failing_rank < 0 || failing_rank == rank; }
};

[[noreturn]] void hang() {
  for (;;) ::pause();
}

// Nonzero: it is to fail as its kind of call fails.
int fail(const Order& order, const std::string& here) {
  std::fprintf(stderr, "rank %d is to fail in %s\n", order.rank, here.c_str());
  if (order.how == "throw") std::fprintf(stderr, "told to fail in %s\n", here.c_str());
  std::fflush(nullptr);
  if (order.how == "exit") std::_Exit(3);
  if (order.how == "segv") std::raise(SIGSEGV);
  if (order.how == "kill") std::raise(SIGKILL);
  if (order.how == "hang") hang();
  return 1;
}

int fail_if_told(const Order& order, const std::string& here, int count) {
  return order.fails_in(here) && order.is_mine() && count == order.at ? fail(order, here) : 0;
}

struct Training {
  Order order;
  int count = 0;
};

int save(const char* directory, void* user) {
  const auto& training = *static_cast<Training*>(user);
  if (training.order.rank == 0) {
    std::ofstream(std::filesystem::path(directory) / "state.json") << training.count << '\n';
  }
  return fail_if_told(training.order, "save", training.count);
}

// A step that fails before an attempt that fails in its load waits for that load's checkpoint.
void await_checkpoint(const Order& order) {
  const bool is_next = order.attempt < order.where.size() && order.where[order.attempt] == "load";
  if (!is_next || order.at < 2) return;
  char name[32];
  std::snprintf(name, sizeof name, "checkpoint_%06d", order.at - 1);
  const std::filesystem::path folder = variable("TUNE_TRIAL_DIR", ".");
  while (!std::filesystem::exists(folder / name)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// As the ranks of a group meet before they train: each has said hello.
void meet_other_ranks(const Order& order) {
  const std::filesystem::path folder = variable("TUNE_TRIAL_DIR", ".");
  const auto mark = [&](int rank) {
    return folder / ("met." + std::to_string(order.attempt) + "." + std::to_string(rank));
  };
  std::ofstream(mark(order.rank)) << "\n";
  for (int rank = 0; rank < number("WORLD_SIZE", 1); ++rank) {
    while (!std::filesystem::exists(mark(rank))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

int train_two_ways(Training& training) {
  const Order& order = training.order;
  tune_begin(save, &training);
  meet_other_ranks(order);
  if (const char* folder = tune_checkpoint()) {
    std::ifstream(std::filesystem::path(folder) / "state.json") >> training.count;
    if (fail_if_told(order, "load", order.at)) return 1;
  }
  do {
    ++training.count;
    std::this_thread::sleep_for(std::chrono::milliseconds(order.step_ms));
    if (training.count == order.at) await_checkpoint(order);
    if (fail_if_told(order, "step", training.count)) return 1;
  } while (tune_report_number("count", training.count));
  return 0;
}

int train_one_way(Training& training) {
  const Order& order = training.order;
  for (;;) {
    ++training.count;
    std::this_thread::sleep_for(std::chrono::milliseconds(order.step_ms));
    if (fail_if_told(order, "step", training.count)) return 1;
    // A rank whose neighbour fails stands in a collective with it.
    if (order.fails_in("step") && !order.is_mine() && training.count == order.at) hang();
    std::printf("tune: {\"count\": %d}\n", training.count);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Training training;
  if (fail_if_told(training.order, "setup", training.order.at)) return 1;
  if (training.order.fails_in("setup") && !training.order.is_mine()) hang();
  return std::string(argc > 1 ? argv[1] : "") == "one_way" ? train_one_way(training)
                                                           : train_two_ways(training);
}
