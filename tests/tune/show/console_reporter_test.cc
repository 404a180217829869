// The status block as text, and where and when it is written.
#include "tune/show/console_reporter.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <deque>

#include "core/refusal.h"
#include "tune/show/status_table.h"
#include "tune/spec/experiment_identity.h"

namespace tune {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Times are told in local time.
struct InUtc {
  InUtc() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
} const in_utc;

// An experiment as the driver would show it.
struct Scene {
  ExperimentSpec spec;
  std::deque<Trial> trials;
  std::optional<TrialNumber> best;
  seconds running_for{192};
  bool live = true;

  Scene() {
    spec.name = "FashionMnist_2026-11-21_11-38-00";
    spec.trainable = "FashionMnist";
    spec.options.metric = "mean_accuracy";
    spec.options.mode = Mode::kMax;
    spec.options.seed = 7;
    spec.options.config = {{"lr", loguniform(1e-4, 1)}, {"momentum", uniform(0, 1)}, {"batch", 64}};
  }

  Trial& add(TrialStatus status, const Config& config = {{"lr", 0.00032}, {"momentum", 0.30781}}) {
    Trial& trial = trials.emplace_back();
    trial.number.value = static_cast<std::uint32_t>(trials.size() - 1);
    trial.status = status;
    trial.config = pack(config);
    if (status == TrialStatus::kRunning)
      trial.location = "10.0.0.3:" + std::to_string(400 + trials.size());
    return trial;
  }
  Trial& add(TrialStatus status, const Result& result, const Config& config) {
    Trial& trial = add(status, config);
    report(trial, result);
    return trial;
  }
  static void report(Trial& trial, const Result& result) {
    Reported report;
    report.iteration = trial.last ? trial.last->iteration + 1 : 1;
    report.time_total = milliseconds(1250) * static_cast<std::int64_t>(report.iteration);
    report.result = pack(result);
    trial.last = report;
    trial.metric = ResultView(report).number("mean_accuracy");
  }

  ExperimentStatus status(std::optional<std::uint64_t> total = 32) const {
    ExperimentStatus shown{.options = spec.options,
                           .trainable = spec.trainable,
                           .experiment_id = experiment_id_of(spec),
                           .trials = trials};
    shown.total_trials = total;
    for (const Trial& trial : trials) ++shown.counts[static_cast<std::size_t>(trial.status)];
    shown.best = best;
    shown.running_for = running_for + milliseconds(410);
    shown.wall = seconds(1'795'261'269);  // 2026-11-21 11:41:09
    shown.cpu_units_used = 20 * kUnit;
    shown.cpu_units_total = 112 * kUnit;
    shown.gpu_units_used = 15 * kUnit + 9999;
    shown.gpu_units_total = 16 * kUnit;
    shown.memory_used_bytes = 19ll << 30;
    shown.memory_total_bytes = 250ll << 30;
    shown.scheduler_lines = {"Using AsyncHyperBand: num_stopped=3",
                             "Bracket: Iter 4.000: 0.1129 | Iter 1.000: 0.1129"};
    shown.directory = "results/" + spec.name;
    shown.live = live;
    return shown;
  }
  std::string id(std::uint32_t number) const {
    return trial_id(experiment_id_of(spec), TrialNumber{number});
  }
};

std::string rendered(const Scene& scene, const ReporterOptions& options = {}, BlockSize size = {}) {
  BlockMemory memory;
  std::string text;
  for (const std::string& line : render_status(scene.status(), options, memory, size)) {
    text += line + "\n";
  }
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::vector<const Trial*> rows_of(const Scene& scene, std::size_t max_rows) {
  BlockMemory memory;
  return choose_rows(scene.status(), max_rows, memory);
}

// ---- Rendering ----------------------------------------------------------------------------------

TEST_CASE("the whole block") {
  Scene scene;
  scene.add(TrialStatus::kTerminated, {{"mean_accuracy", 0.11738281}, {"mean_loss", 2.25}},
            {{"lr", 0.00032}, {"momentum", 0.3078125}});
  scene.add(TrialStatus::kRunning, {{"mean_accuracy", 0.1}, {"mean_loss", 2.5}},
            {{"lr", 0.5}, {"momentum", 0.25}});
  scene.add(TrialStatus::kRunning);
  scene.add(TrialStatus::kPending);
  scene.best = TrialNumber{0};
  const std::string id = scene.id(0).substr(0, 5);
  CHECK(rendered(scene) ==
        "== Status ==\n"
        "Current time: 2026-11-21 11:41:09 (running for 00:03:12.41)\n"
        "Memory usage on this node: 19.0/250.0 GiB\n"
        "Using AsyncHyperBand: num_stopped=3\n"
        "Bracket: Iter 4.000: 0.1129 | Iter 1.000: 0.1129\n"
        "Resources requested: 20.0/112 CPUs, 15.9999/16 GPUs\n"
        "Current best trial: " +
            id +
            "_00000 with mean_accuracy=0.1174 and parameters="
            "{'lr': 0.00032, 'momentum': 0.3078}\n"
            "Result logdir: results/FashionMnist_2026-11-21_11-38-00\n"
            "Number of trials: 4/32 (1 PENDING, 2 RUNNING, 1 TERMINATED) [>...................]\n"
            "| Trial name               | status     | loc          |      lr | momentum |      "
            "acc | loss | iter | total time (s) |\n"
            "|--------------------------+------------+--------------+---------+----------+---------"
            "-+------+------+----------------|\n"
            "| FashionMnist_" +
            id +
            "_00001 | RUNNING    | 10.0.0.3:402 |     0.5 |     0.25 |      0.1 |  2.5 |    1 |    "
            "       1.25 |\n"
            "| FashionMnist_" +
            id +
            "_00002 | RUNNING    | 10.0.0.3:403 | 0.00032 |  0.30781 |          |      |      |    "
            "            |\n"
            "| FashionMnist_" +
            id +
            "_00003 | PENDING    |              | 0.00032 |  0.30781 |          |      |      |    "
            "            |\n"
            "| FashionMnist_" +
            id +
            "_00000 | TERMINATED |              | 0.00032 | 0.307812 | 0.117383 | 2.25 |    1 |    "
            "       1.25 |\n");
}

TEST_CASE("an experiment that has just begun, and one without an end") {
  Scene scene;
  CHECK(lines_of(rendered(scene)).back() == "Number of trials: 0/32 [....................]");
  scene.add(TrialStatus::kPending);
  BlockMemory memory;
  const auto lines = render_status(scene.status(std::nullopt), {}, memory, {});
  CHECK(std::find(lines.begin(), lines.end(), "Number of trials: 1 (1 PENDING)") != lines.end());
}

TEST_CASE("an experiment that nobody runs has no resources to show") {
  Scene scene;
  scene.live = false;
  CHECK_FALSE(testing::has(rendered(scene), "Resources"));
  CHECK_FALSE(testing::has(rendered(scene), "Memory"));
}

TEST_CASE("twenty rows, every status among them, and what is left is counted") {
  Scene scene;
  for (int i = 0; i < 3; ++i) scene.add(TrialStatus::kTerminated);
  for (int i = 0; i < 4; ++i) scene.add(TrialStatus::kRunning);
  for (int i = 0; i < 25; ++i) scene.add(TrialStatus::kPending);
  // In turn: 4 RUNNING, 3 TERMINATED, and 20 - 7 = 13 PENDING; 25 - 13 = 12 are left.
  const auto lines = lines_of(rendered(scene));
  CHECK(lines.back() == "... 12 more trials not shown (12 PENDING)");
  std::array<int, 5> rows{};
  std::string order;
  for (const Trial* trial : rows_of(scene, 20)) {
    ++rows[static_cast<std::size_t>(trial->status)];
    order += status_name(trial->status)[0];
  }
  CHECK(rows == std::array{13, 4, 0, 3, 0});
  CHECK(order == "RRRRPPPPPPPPPPPPPTTT");
}

TEST_CASE("rows are shared between statuses") {
  struct Case {
    std::array<int, 5> trials;  // PENDING, RUNNING, PAUSED, TERMINATED, ERROR
    std::size_t max_rows;
    std::string order;
  };
  const Case cases[] = {
      {{0, 0, 0, 0, 0}, 20, ""},       {{9, 9, 9, 9, 9}, 5, "RAPTE"},
      {{9, 9, 9, 9, 9}, 7, "RRAAPTE"}, {{1, 0, 0, 50, 1}, 5, "PTTTE"},
      {{0, 50, 0, 0, 0}, 3, "RRR"},    {{2, 1, 1, 1, 1}, 20, "RAPPTE"},
      {{1, 1, 1, 1, 1}, 2, "RA"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.order);
    Scene scene;
    for (int i = 0; i < 50; ++i) {
      for (std::size_t status = 0; status < 5; ++status) {
        if (i < c.trials[status]) scene.add(static_cast<TrialStatus>(status));
      }
    }
    std::string order;
    for (const Trial* trial : rows_of(scene, c.max_rows)) {
      order += trial->status == TrialStatus::kPaused ? 'A' : status_name(trial->status)[0];
    }
    CHECK(order == c.order);
  }
}

TEST_CASE("of trials that are over the newest are shown, of the others the oldest") {
  Scene scene;
  for (int i = 0; i < 4; ++i) scene.add(TrialStatus::kTerminated);
  for (int i = 0; i < 4; ++i) scene.add(TrialStatus::kPending);
  std::vector<std::uint32_t> numbers;
  for (const Trial* trial : rows_of(scene, 4)) numbers.push_back(trial->number.value);
  CHECK(numbers == std::vector<std::uint32_t>{4, 5, 2, 3});
}

std::string header(const Scene& scene, const ReporterOptions& options = {}, BlockSize size = {}) {
  for (const std::string& line : lines_of(rendered(scene, options, size))) {
    if (!line.starts_with("| Trial name")) continue;
    std::string names;
    for (char c : line) {
      if (c != ' ' || !names.ends_with(' ')) names += c;
    }
    return names;
  }
  return "none";
}

TEST_CASE("a trial in ERROR that is tried again is shown again") {
  Scene scene;
  BlockMemory memory;
  scene.add(TrialStatus::kTerminated);
  scene.add(TrialStatus::kError);
  scene.add(TrialStatus::kTerminated);
  CHECK(choose_rows(scene.status(), 20, memory).size() == 3);
  CHECK(memory.over == 3);
  scene.trials[1].status = TrialStatus::kRunning;
  const auto rows = choose_rows(scene.status(), 20, memory);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == &scene.trials[1]);
}

TEST_CASE("columns: searched parameters, usual metrics, three others as first reported") {
  Scene scene;
  scene.spec.options.metric = "m4";
  scene.add(TrialStatus::kRunning,
            {{"m1", 1},
             {"text", "no metric"},
             {"m2", {{"x", 2}}},
             {"timesteps_this_iter", 4},
             {"time_total_s", 9},
             {"m3", 3},
             {"m4", 4}},
            {{"lr", 1}});
  CHECK_HAS(header(scene), "| lr | momentum | iter | total time (s) | m1 | m2/x | m4 |");
  CHECK_HAS(header(scene, {.metrics = {"m3", "mean_accuracy"}, .parameters = {"batch"}}),
            "| loc | batch | m3 | acc |");
}

TEST_CASE("places that get no trials are named") {
  Scene scene;
  CHECK(rendered(scene).find("Set aside") == std::string::npos);
  ExperimentStatus status = scene.status();
  status.set_aside = {"GPU 1 of node-3", "node-7"};
  BlockMemory memory;
  std::string text;
  for (const std::string& line : render_status(status, {}, memory, {})) text += line + "\n";
  CHECK_HAS(text, "\nSet aside, as trials failed there: GPU 1 of node-3, node-7\n");
}

TEST_CASE("a text under a framework's name does not hide the number that decides") {
  Scene scene;
  scene.add(TrialStatus::kRunning, {{"training_iteration", "epoch 7"}, {"time_total_s", 9}},
            {{"lr", 1}});
  const auto rows = lines_of(rendered(
      scene, {.metrics = {"training_iteration", "time_total_s"}, .parameters = {"lr"}}));
  CHECK_HAS(rows.back(), "|  1 |    1 |              9 |");
}

TEST_CASE("the order of metrics is that of their first report, in whatever trial") {
  Scene scene;
  BlockMemory memory;
  scene.add(TrialStatus::kRunning, {{"b", 1}}, {});
  render_status(scene.status(), {}, memory, {});
  scene.report(scene.trials[0], {{"a", 1}, {"b", 1}});
  render_status(scene.status(), {}, memory, {});
  CHECK(memory.metrics == std::vector<std::string>{"b", "a"});
}

TEST_CASE("cells of every kind of value") {
  struct Case {
    Value value;
    const char* cell;
  };
  const Case cases[] = {{1, "1"},
                        {0.1, "0.1"},
                        {123456789.0, "1.23457e+08"},
                        {true, "true"},
                        {nullptr, "null"},
                        {"relu", "relu"},
                        {"a\x1b[2Jb\nc\td", "a?[2Jb c d"},
                        {list({1, "x"}), "[1,\"x\"]"},
                        {std::string(50, 'x'), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."}};
  for (const Case& c : cases) {
    Scene scene;
    scene.add(TrialStatus::kPending, {{"lr", c.value}});
    const std::string row =
        lines_of(rendered(scene, {.metrics = {"m"}, .parameters = {"lr"}})).back();
    CHECK_HAS(row, std::string(" ") + c.cell + " | ");
  }
}

TEST_CASE("the best trial's parameters: what was searched, or everything when nothing was") {
  Scene scene;
  scene.add(TrialStatus::kTerminated, {{"mean_accuracy", 1}},
            {{"lr", 0.12345678}, {"momentum", "hi\n"}, {"batch", 64}});
  scene.best = TrialNumber{0};
  CHECK_HAS(rendered(scene), "mean_accuracy=1 and parameters={'lr': 0.1235, 'momentum': 'hi '}");
  scene.spec.options.config = {{"batch", 64}};
  CHECK_HAS(rendered(scene), "'batch': 64}");
}

TEST_CASE("a result that its worker damaged leaves its cells empty") {
  Scene scene;
  scene.add(TrialStatus::kRunning, {{"mean_accuracy", 1}}, {{"lr", 1}});
  scene.trials[0].last->result.bytes = "\x81";
  CHECK_HAS(rendered(scene), "RUNNING");
}

TEST_CASE("on a screen everything fits") {
  Scene scene;
  for (int i = 0; i < 30; ++i) {
    scene.add(i % 2 ? TrialStatus::kRunning : TrialStatus::kPending,
              {{"mean_accuracy", 0.5}, {"m1", 1}, {"m2", 2}, {"m3", 3}},
              {{"lr", 0.123}, {"momentum", 0.5}});
  }
  scene.best = TrialNumber{3};
  for (const std::size_t width : {20, 40, 60, 80, 100, 130}) {
    for (const std::size_t height : {3, 8, 12, 14, 20, 40}) {
      CAPTURE(width);
      CAPTURE(height);
      const auto lines = lines_of(rendered(scene, {}, {width, height}));
      CHECK(lines.size() <= height);
      for (const std::string& line : lines) CHECK(text_width(line) <= width);
      if (height >= 14) CHECK(lines.back().starts_with("... "));
    }
  }
  // First to go: loc, parameters after the second, total time, other metrics from the last.
  CHECK(header(scene, {}, {100, 40}) ==
        "| Trial name | status | lr | momentum | acc | iter | m1 | m2 | m3 |");
  CHECK(header(scene, {}, {60, 40}) == "| Trial name | status | lr | acc | iter |");
}

TEST_CASE("texts are cut by what a terminal shows") {
  struct Case {
    const char* text;
    std::size_t width;
    const char* fits;
  };
  const Case cases[] = {{"abc", 3, "abc"},     {"abcdef", 5, "ab..."}, {"käsekuchen", 6, "käs..."},
                        {"€€€€€", 5, "€€€€€"}, {"abcdef", 2, ".."},    {"", 0, ""}};
  for (const Case& c : cases) CHECK(fitted(c.text, c.width) == c.fits);
  CHECK(printable("a\x1b[31m\tb\n\x7fkäse") == "a?[31m\tb\n?käse");
}

// ---- Writing ------------------------------------------------------------------------------------

struct Screen {
  std::string text;
  std::optional<BlockSize> size;
  bool is_read = true;  // else what is written waits,
  std::size_t room = 1u << 20;  // as much as this
  bool was_waited_for = false;
};

class FakeConsole : public Console {
 public:
  explicit FakeConsole(std::shared_ptr<Screen> screen) : screen_(std::move(screen)) {}
  bool write(std::string_view text) override {
    if (!screen_->is_read && screen_->text.size() + text.size() > screen_->room) return false;
    screen_->text += text;
    return true;
  }
  bool is_idle() const override { return screen_->is_read || screen_->text.empty(); }
  void wait() override { screen_->was_waited_for = true; }
  std::optional<BlockSize> screen() override { return screen_->size; }

 private:
  std::shared_ptr<Screen> screen_;
};

struct Reporting {
  explicit Reporting(std::optional<BlockSize> size, ReporterOptions options = {})
      : screen(std::make_shared<Screen>()),
        reporter(std::move(options), std::make_unique<FakeConsole>(screen)) {
    screen->size = size;
  }
  std::string take() { return std::exchange(screen->text, {}); }
  std::shared_ptr<Screen> screen;
  ConsoleReporter reporter;
};

TEST_CASE("a terminal's block is redrawn in place, notices stand above it") {
  Scene scene;
  scene.add(TrialStatus::kPending);
  Reporting terminal(BlockSize{200, 50});
  terminal.reporter.status(scene.status(), false);
  const std::string first = terminal.take();
  const std::size_t height = lines_of(first).size();
  CHECK(first.starts_with("== Status ==\n"));
  const std::string back = "\x1b[" + std::to_string(height) + "A\r";

  scene.add(TrialStatus::kPending);
  terminal.reporter.status(scene.status(), false);
  const std::string second = terminal.take();
  CHECK(second.starts_with(back + "== Status ==\x1b[K\n"));
  // Nothing is cleared before it is written over: tmux would keep a copy of the whole screen.
  CHECK(second.find("\x1b[J") == second.size() - 3);
  CHECK_HAS(second, "2 PENDING");

  terminal.reporter.notice("node x is lost\x1b[2J");
  const std::string taller = "\x1b[" + std::to_string(height + 1) + "A\r";
  CHECK(terminal.take() == taller + "node x is lost?[2J\x1b[K\n" + second.substr(back.size()));
}

TEST_CASE("while nobody reads no block is made, and notices wait up to a bound") {
  Scene scene;
  scene.add(TrialStatus::kPending);
  Reporting terminal(BlockSize{200, 50});
  terminal.screen->is_read = false;
  terminal.reporter.status(scene.status(), false);
  const std::string first = terminal.screen->text;
  CHECK_HAS(first, "1 PENDING");
  scene.add(TrialStatus::kPending);
  terminal.reporter.status(scene.status(), false);
  CHECK(terminal.screen->text == first);

  terminal.reporter.notice("one that fits");
  const std::string with_notice = terminal.screen->text;
  CHECK_HAS(with_notice, "one that fits");
  terminal.screen->room = with_notice.size();
  for (int i = 0; i < 3; ++i) terminal.reporter.notice("one too many");
  CHECK(terminal.screen->text == with_notice);

  terminal.screen->is_read = true;  // what waited is read, and the block stands where it was drawn
  terminal.take();
  const std::size_t height = lines_of(first).size();
  terminal.reporter.status(scene.status(), false);
  const std::string then = terminal.take();
  CHECK(then.starts_with("\x1b[" + std::to_string(height) +
                         "A\r3 notices not shown: nobody read this output\x1b[K\n"));
  CHECK_HAS(then, "2 PENDING");
  terminal.reporter.status(scene.status(), false);
  CHECK_FALSE(testing::has(terminal.take(), "not shown"));
}

TEST_CASE("a last block is made whether somebody reads or not, and so is what was lost till then") {
  Scene scene;
  Reporting file(std::nullopt);
  file.screen->is_read = false;
  file.screen->room = 8;
  file.reporter.notice("a very long one");
  file.screen->room = 1u << 20;
  file.reporter.notice("short");
  CHECK_FALSE(file.screen->was_waited_for);
  file.reporter.status(scene.status(), true);
  CHECK(file.screen->was_waited_for);
  CHECK(file.take().starts_with("1 notice not shown: nobody read this output\nshort\n== Status =="));
}

TEST_CASE("a terminal that became narrower has wrapped the old block") {
  Scene scene;
  Reporting terminal(BlockSize{200, 50});
  terminal.reporter.status(scene.status(), false);
  std::size_t height = 0;
  for (const std::string& line : lines_of(terminal.take())) height += (line.size() + 29) / 30;
  terminal.screen->size = BlockSize{30, 50};
  terminal.reporter.status(scene.status(), false);
  CHECK(terminal.take().starts_with("\x1b[" + std::to_string(height) + "A\r"));
}

TEST_CASE("the block leaves the terminal's last line free") {
  Scene scene;
  for (int i = 0; i < 30; ++i) scene.add(TrialStatus::kPending);
  Reporting terminal(BlockSize{100, 20});
  terminal.reporter.status(scene.status(), false);
  CHECK(lines_of(terminal.take()).size() == 19);
}

TEST_CASE("elsewhere the block is printed at once, every 30 s when it changed, and at the end") {
  Scene scene;
  scene.add(TrialStatus::kPending);
  Reporting file(std::nullopt);
  scene.running_for = seconds(0);
  file.reporter.status(scene.status(), false);
  CHECK_HAS(file.take(), "1 PENDING");
  scene.add(TrialStatus::kPending);
  scene.running_for = seconds(29);
  file.reporter.status(scene.status(), false);
  CHECK(file.take() == "");
  scene.running_for = seconds(30);
  file.reporter.status(scene.status(), false);
  const std::string second = file.take();
  CHECK_HAS(second, "2 PENDING");
  CHECK_FALSE(testing::has(second, "\x1b"));
  scene.running_for = seconds(90);  // only the time is another
  file.reporter.status(scene.status(), false);
  CHECK(file.take() == "");
  file.reporter.notice("hello");
  CHECK(file.take() == "hello\n");
  file.reporter.status(scene.status(), true);
  CHECK_HAS(file.take(), "00:01:30.41");
}

TEST_CASE("every_s chooses how often") {
  for (const bool terminal : {true, false}) {
    Scene scene;
    Reporting shown(terminal ? std::optional(BlockSize{200, 50}) : std::nullopt, {.every_s = 5});
    int blocks = 0;
    for (int second = 0; second <= 20; ++second) {
      scene.running_for = seconds(second);
      scene.add(TrialStatus::kPending);
      shown.reporter.status(scene.status(), false);
      blocks += !shown.take().empty();
    }
    CHECK(blocks == 5);  // at 0, 5, 10, 15, 20
  }
}

TEST_CASE("at the end: the best configuration and where the CSV is; what follows stands below") {
  Scene scene;
  scene.add(TrialStatus::kTerminated, {{"mean_accuracy", 0.5}}, {{"lr", 0.5}, {"batch", 64}});
  scene.best = TrialNumber{0};
  Reporting terminal(BlockSize{200, 50});
  terminal.reporter.status(scene.status(), true);
  CHECK(
      terminal.take().ends_with("Best config is: {\"lr\":0.5,\"batch\":64}\n"
                                "Results: results/FashionMnist_2026-11-21_11-38-00/results.csv\n"));
  terminal.reporter.notice("interrupted");
  CHECK(terminal.take() == "interrupted\n");
  // A table made from another's journal is not the end.
  scene.live = false;
  Reporting reader(std::nullopt);
  reader.reporter.status(scene.status(), true);
  CHECK_FALSE(testing::has(reader.take(), "Results:"));
}

TEST_CASE("a failure shows its cause, its file and the last 20 lines of stderr") {
  Scene scene;
  Trial& trial = scene.add(TrialStatus::kError);
  std::string tail;
  for (int i = 1; i <= 25; ++i) tail += "line " + std::to_string(i) + "\n";
  trial.failure =
      Failure{AttemptNumber{2}, Outcome::kSignal, 1, 11, "killed by signal 11 (SIGSEGV)", tail};
  Reporting file(std::nullopt);
  file.reporter.failure(trial, "x_00000", "results/s/x_00000/error.txt", true);
  const std::string text = file.take();
  CHECK(
      text.starts_with("Trial x_00000 failed (attempt 2, rank 1): killed by signal 11 (SIGSEGV); "
                       "it is tried again\n"
                       "  see results/s/x_00000/error.txt\n"
                       "  its last lines on stderr:\n"
                       "    line 6\n"));
  CHECK(text.ends_with("    line 25\n"));
  (*trial.failure)->stderr_tail.clear();
  file.reporter.failure(trial, "x_00000", "error.txt", false);
  CHECK(file.take() ==
        "Trial x_00000 failed (attempt 2, rank 1): killed by signal 11 (SIGSEGV); it is "
        "in ERROR\n  see error.txt\n");
}

}  // namespace
}  // namespace tune
