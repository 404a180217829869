#include "tune/show/terminal_paint.h"

#include <doctest/doctest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "core/refusal.h"
#include "tune/show/console_reporter.h"
#include "tune/show/status_block.h"

namespace tune {
namespace {

struct Sweep {
  RunOptions options;
  std::string trainable = "T";
  std::deque<Trial> trials;
  ExperimentStatus status{.options = options, .trainable = trainable, .trials = trials};

  Sweep(std::uint64_t total, std::uint64_t over, std::uint64_t running, double minutes) {
    status.total_trials = total;
    status.counts[static_cast<std::size_t>(TrialStatus::kTerminated)] = over;
    status.counts[static_cast<std::size_t>(TrialStatus::kRunning)] = running;
    status.running_for =
        std::chrono::duration_cast<ExperimentTime>(std::chrono::duration<double>(60 * minutes));
  }
};

TEST_CASE("the time to go is what trials took so far for those that are left") {
  const auto time = [](std::uint64_t over, double minutes) {
    return time_to_go(Sweep(8, over, 1, minutes).status);
  };
  CHECK(time(4, 1) == "about 60 s to go");  // 4 in a minute: the other 4 take another one
  CHECK(time(4, 5) == "about 5 min to go");
  CHECK(time(6, 390) == "about 2 h 10 min to go");
  CHECK(time(4, 60 * 60) == "about 2 d 12 h to go");
  CHECK(time(2, 5).empty());  // too few to tell
  CHECK(time(8, 5).empty());
}

TEST_CASE("a sweep without an end, or that is over, has no time to go") {
  Sweep endless(8, 4, 1, 1);
  endless.status.total_trials.reset();
  CHECK(time_to_go(endless.status).empty());
  Sweep ended(8, 4, 1, 1);
  ended.status.live = false;
  CHECK(time_to_go(ended.status).empty());
}

std::string without_colours(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      plain += text[i];
    }
  }
  return plain;
}

TEST_CASE("colours change no letter; the best trial's row is bold, others show their status") {
  const std::string best = "| T_2f1e0_00001 | TERMINATED |  0.5 |";
  const std::string other = "| T_2f1e0_00002 | ERROR      |  0.4 |";
  CHECK(painted(best, "2f1e0_00001") == "\x1b[1;32m" + best + "\x1b[0m");
  CHECK(painted(other, "2f1e0_00001") == "| T_2f1e0_00002 | \x1b[1;31mERROR\x1b[0m      |  0.4 |");
  CHECK(painted("Result logdir: x", "") == "Result logdir: x");
  for (const char* line :
       {"== Status ==", "| Trial name | status |", "|------+-----|", "Current best trial: x with",
        "Paused by users: x", "12 trials wait: 1 job asked for for 3 s",
        "... 3 more trials not shown (3 PENDING)"}) {
    CHECK(painted(line, "x") != line);
    CHECK(without_colours(painted(line, "x")) == line);
  }
}

class Coloured : public Console {
 public:
  explicit Coloured(std::string& text) : text_(text) {}
  bool write(std::string_view text) override {
    text_ += text;
    return true;
  }
  bool is_idle() const override { return true; }
  void wait() override {}
  std::optional<BlockSize> screen() override { return BlockSize{width_, 20}; }
  bool has_colours() const override { return colours_; }

  std::size_t width_ = 80;
  bool colours_ = true;

 private:
  std::string& text_;
};

TEST_CASE("a coloured block fits the screen as the plain one does") {
  std::string text;
  ConsoleReporter reporter({}, std::make_unique<Coloured>(text));
  Sweep sweep(20, 5, 2, 10);
  reporter.status(sweep.status, false);
  CHECK(text.starts_with("\x1b[1m== Status ==\x1b[0m\n"));
  CHECK(text.find("] about 30 min to go\n") != text.npos);  // 5 in 10 minutes
  const std::string plain = without_colours(text);
  for (std::size_t at = 0; at < plain.size(); at = plain.find('\n', at) + 1) {
    CHECK(plain.find('\n', at) - at <= 80);
  }
}

TEST_CASE("the bar and the time to go have a line of their own where they do not fit") {
  for (const bool colours : {true, false}) {  // NO_COLOR takes the colours alone away
    for (const std::size_t width : {200u, 64u}) {
      CAPTURE(colours);
      CAPTURE(width);
      std::string text;
      auto console = std::make_unique<Coloured>(text);
      console->width_ = width;
      console->colours_ = colours;
      ConsoleReporter reporter({}, std::move(console));
      Sweep sweep(20, 5, 2, 10);
      reporter.status(sweep.status, false);
      CHECK((text.find('\x1b') == text.npos) == !colours);
      const std::string bar = "[#####>>.............] about 30 min to go\n";
      CHECK_HAS(text, (width == 64 ? "trials: 0/20\n" : "trials: 0/20 ") + bar);
    }
  }
}

}  // namespace
}  // namespace tune
