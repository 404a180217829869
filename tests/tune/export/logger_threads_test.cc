#include "tune/export/logger_threads.h"

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/refusal.h"

namespace tune {
namespace {

using std::chrono::milliseconds;

// The fate of a fake exporter; outlives its thread.
struct Said {
  std::promise<void> is_looking;
  std::promise<void> may_go_on;
  int looks = 0;
  bool finished = false;
};

class Fake : public Exporter {
 public:
  Fake(std::shared_ptr<Said> said, bool hangs) : said_(std::move(said)), hangs_(hangs) {}
  void write_news(const std::function<bool()>&) override {
    if (++said_->looks == 1) said_->is_looking.set_value();
    if (hangs_) said_->may_go_on.get_future().wait();
  }
  void finish() override { said_->finished = true; }
  std::vector<std::string> take_problems() override {
    return said_->looks == 1 ? std::vector<std::string>{"a line is damaged"}
                             : std::vector<std::string>{};
  }

 private:
  std::shared_ptr<Said> said_;
  bool hangs_;
};

LoggerThreads::Logger fake(const std::shared_ptr<Said>& said, bool hangs = false) {
  return {.name = "fake",
          .make = [said, hangs] { return std::make_unique<Fake>(said, hangs); },
          .remedy = "tune export --fake s"};
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& one : lines) all += one + "\n";
  return all;
}

TEST_CASE("a logger looks once more when the files are complete, and then finishes") {
  const auto said = std::make_shared<Said>();
  LoggerThreads threads;
  threads.start(fake(said));
  said->is_looking.get_future().wait();
  threads.finish(milliseconds(60'000));
  CHECK(said->looks >= 2);
  CHECK(said->finished);
  CHECK(joined(threads.take_notices()) == "logger fake: a line is damaged\n");
  CHECK(threads.take_notices().empty());
}

TEST_CASE("a logger that is told to end at once does not finish") {
  const auto said = std::make_shared<Said>();
  {
    LoggerThreads threads;
    threads.start(fake(said));
    said->is_looking.get_future().wait();
  }
  CHECK_FALSE(said->finished);
}

TEST_CASE("a logger that fails is a notice with the way out") {
  LoggerThreads threads;
  threads.start({.name = "fake",
                 .make = []() -> std::unique_ptr<Exporter> {
                   throw Error(ErrorCode::kIo, "writing x: No space left on device");
                 },
                 .remedy = "tune export --fake s"});
  threads.finish(milliseconds(60'000));
  CHECK(joined(threads.take_notices()) ==
        "logger fake: writing x: No space left on device; the sweep goes on without it; tune "
        "export --fake s writes the rest\n");
}

TEST_CASE("a logger that hangs is left behind with a notice") {
  const auto said = std::make_shared<Said>();
  {
    LoggerThreads threads;
    threads.start(fake(said, true));
    said->is_looking.get_future().wait();
    threads.finish(milliseconds(1));
    CHECK_HAS(joined(threads.take_notices()), "it has not done all within 0.001 s");
  }
  said->may_go_on.set_value();  // the thread ends by itself
}

}  // namespace
}  // namespace tune
