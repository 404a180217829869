// Function trainables: the same step boundary, driven from the user's own loop.
#include <fstream>

#include <doctest/doctest.h>

#include "trainables/temporary_folder.h"
#include "trainables/worker_process.h"

using namespace tune;
using namespace tune::testing;

namespace {

void count_up(const Config& config, Session& session) {
  int count = 0;
  if (const auto folder = session.checkpoint()) std::ifstream(*folder / "count") >> count;
  const int steps = config.get_or("steps", 3);
  while (count < steps) {
    ++count;
    const auto save = [&](const std::filesystem::path& folder) {
      std::ofstream(folder / "count") << count;
    };
    if (!session.report({{"count", count}}, save)) return;
  }
}

}  // namespace

TEST_CASE("a function that returns has completed its trial") {
  TemporaryFolder folder;
  WorkerProcess worker(function_entry("f", count_up), start_in(folder.path()));
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto report = worker.expect<Reported>();
    CHECK(report.iteration == i);
    CHECK_FALSE(report.final);
  }
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
  CHECK(worker.wait() == 0);
}

TEST_CASE("a checkpoint that is due without a save is warned of once") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.checkpoint.frequency = 2;
  const auto report_only = [](const Config&, Session& session) {
    for (int i = 1; i <= 4; ++i) session.report({{"x", i}});
  };
  WorkerProcess worker(function_entry("f", report_only), start);
  worker.expect<Reported>();
  worker.expect<Reported>();
  CHECK(worker.expect<Warning>().text.find("frequency is 2") != std::string::npos);
  worker.expect<Reported>();
  worker.expect<Reported>();
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
}

TEST_CASE("a function saves when a checkpoint is due and goes on from it") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"count", 2};
  {
    WorkerProcess worker(function_entry("f", count_up), start);
    worker.expect<Reported>();
    CHECK(worker.expect<Reported>().waiting);
    worker.send(StopAttempt{{7}, {1}, StopKind::kPause, {}});
    CHECK(worker.expect<RankSaved>().iteration == 2);
    CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kPaused);
  }
  const auto trial = folder.path() / "0a1b2_00007";
  std::filesystem::rename(trial / ".checkpoint_000002.tmp-1", trial / "checkpoint_000002");
  start.launch.restore_iteration = 2;
  start.launch.attempt = {2};
  start.launch.until = {};
  WorkerProcess worker(function_entry("f", count_up), start);
  const auto report = worker.expect<Reported>();
  CHECK(report.iteration == 3);
  CHECK(unpack(report.result).get<int>("count") == 3);
}

TEST_CASE("a function without a save is lost when it is told to pause") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.launch.until = {"x", 0};
  const auto entry = function_entry("f", [](const Config&, Session& session) {
    while (session.report({{"x", 1}})) {
    }
  });
  WorkerProcess worker(entry, start);
  worker.expect<Reported>();
  worker.send(StopAttempt{{7}, {1}, StopKind::kPause, {}});
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kLost);
}

TEST_CASE("done in a result ends the trial") {
  TemporaryFolder folder;
  const auto entry = function_entry("f", [](const Config&, Session& session) {
    CHECK(session.report({{"x", 1}, {"done", false}}));
    CHECK_FALSE(session.report({{"x", 2}, {"done", true}}));
  });
  WorkerProcess worker(entry, start_in(folder.path()));
  CHECK_FALSE(worker.expect<Reported>().final);
  CHECK(worker.expect<Reported>().final);
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
}

TEST_CASE("a report after the last one ends the process with the same outcome") {
  TemporaryFolder folder;
  const auto entry = function_entry("f", [](const Config&, Session& session) {
    for (;;) session.report({{"done", true}});
  });
  WorkerProcess worker(entry, start_in(folder.path()));
  CHECK(worker.expect<Reported>().final);
  CHECK(worker.expect<WorkerEnded>().outcome == Outcome::kCompleted);
  CHECK_FALSE(worker.next());
  CHECK(worker.wait() == 0);
}

TEST_CASE("a failed save stands even when the function catches it") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.checkpoint.frequency = 1;
  const auto entry = function_entry("f", [](const Config&, Session& session) {
    try {
      session.report({{"x", 1}}, [](const auto&) { throw std::runtime_error("disk full"); });
    } catch (const std::exception&) {
    }
  });
  WorkerProcess worker(entry, start);
  worker.expect<Reported>();
  const auto ended = worker.expect<WorkerEnded>();
  CHECK(ended.outcome == Outcome::kException);
  CHECK(ended.cause == "save: disk full");
}

TEST_CASE("what a function throws is told") {
  TemporaryFolder folder;
  const auto entry =
      function_entry("f", [](const Config& config, Session&) { config.get<double>("lr"); });
  WorkerProcess worker(entry, start_in(folder.path()));
  const auto ended = worker.expect<WorkerEnded>();
  CHECK(ended.outcome == Outcome::kException);
  CHECK(ended.cause.find("function: ") == 0);
  CHECK(ended.cause.find("lr") != std::string::npos);
}

TEST_CASE("a user's own training_iteration is kept, judged and does not change the count") {
  TemporaryFolder folder;
  StartWorker start = start_in(folder.path());
  start.experiment.stop = {{"training_iteration", 200, false}};
  const auto entry = function_entry("f", [](const Config&, Session& session) {
    for (int i = 1; session.report({{"training_iteration", 100 * i}}); ++i) {
    }
  });
  WorkerProcess worker(entry, start);
  CHECK_FALSE(worker.expect<Reported>().final);
  const auto report = worker.expect<Reported>();
  CHECK(report.final);
  CHECK(report.iteration == 2);
  CHECK(unpack(report.result).get<int>("training_iteration") == 200);
}
