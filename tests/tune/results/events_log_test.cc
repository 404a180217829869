// events.jsonl, byte by byte.
#include "tune/results/events_log.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/error.h"
#include "core/json.h"
#include "core/refusal.h"
#include "trainables/temporary_folder.h"
#include "tune/results/event_text.h"
#include "tune/search/proposal.h"
#include "tune/spec/experiment_identity.h"
#include "tune/story.h"

namespace tune {
namespace {

// A sweep's day, told to the log alone.
class Day {
 public:
  explicit Day(std::filesystem::path folder) : folder_(std::move(folder)) {
    trial_.number.value = 3;
    trial_.placement = Placement{AgentNumber{0}, {0, 2}};
  }

  void tell(const Record& record) {
    wall_ += std::chrono::milliseconds(250);
    if (!is_muted) log_.record(record, {wall_});
  }
  void set_status(TrialStatus status) {
    const TrialStatus former = std::exchange(trial_.status, status);
    tell(TrialChanged{trial_, former});
  }
  void begin(std::uint32_t attempt, std::uint64_t restored) {
    trial_.attempt.value = attempt;
    set_status(TrialStatus::kRunning);
    trial_.location = "10.0.0.3:4711";
    tell(AttemptBegan{trial_, hello_.hostname, restored});
  }
  void report(std::uint64_t iteration) {
    trial_.last.emplace();
    trial_.last->iteration = iteration;
    tell(ResultRecorded{trial_, *trial_.last, false});
  }
  std::string read() {
    log_.flush();
    work_.finish();
    return testing::read_text(folder_ / "events.jsonl");
  }

  void morning() {
    tell(DriverBegan{1});
    hello_.hostname = "node-7";
    hello_.ip = "10.0.0.3";
    hello_.cpu_units = 4 * kUnit + kUnit / 2;
    hello_.gpus.resize(3);
    hello_.memory_bytes = 1 << 20;
    tell(NodeJoined{AgentNumber{0}, hello_});
    begin(1, 0);
    report(1);
    tell(TrialChanged{trial_});  // a checkpoint or a pid: nothing begins or ends by it
  }
  void noon() {
    AttemptEnded ended;
    ended.outcome = Outcome::kSignal;
    ended.cause = "killed by signal 11 (SIGSEGV)";
    tell(AttemptOver{trial_, ended});
    trial_.failures = 1;
    trial_.failure = Failure{AttemptNumber{1}, Outcome::kSignal, 2, 11, ended.cause, "tail\n"};
    set_status(TrialStatus::kPending);
    tell(AttemptFailed{trial_, true});
    tell(PlaceSetAside{"GPU 1 of node-7"});
    begin(2, 1);
  }
  void evening() {
    report(2);
    trial_.reason = "rank 7 of 9 at rung 3, \"cut-off\" 0.842";
    tell(VerdictGiven{trial_, 2, StopKind::kStop});
    tell(Notice{"two\nlines, \xff and k\xc3\xa4se"});
    const std::string signal = "SIGINT: running trials save";
    tell(DriverNotice{signal});
    AttemptEnded ended;
    ended.outcome = Outcome::kStopped;
    tell(AttemptOver{trial_, ended});
    set_status(TrialStatus::kTerminated);
    tell(PlaceTakenBack{"GPU 1 of node-7"});
    tell(NodeLeft{AgentNumber{0}, hello_, "its process is gone"});
    tell(ExperimentOver{"finished", ""});
  }

  EventsLog& log() { return log_; }
  Trial& trial() { return trial_; }
  bool is_muted = false;  // the log is told nothing

 private:
  std::filesystem::path folder_;
  ExperimentSpec spec_ = story_spec();
  AgentHello hello_;
  Trial trial_;
  WallTime wall_ = std::chrono::seconds(1'700'000'000);
  SideWork work_{1u << 20};
  EventsLog log_{folder_, spec_, work_};
};

TEST_CASE("a proposal is a line with the numbers of its moment") {
  const testing::TemporaryFolder folder;
  Day day(folder.path());
  Proposal proposal;
  proposal.origin = ProposalOrigin::kModel;
  proposal.expected = Expectation{0.5, 0.25, -1.5};
  proposal.margin = 0.375;
  proposal.neighbours = {TrialNumber{2}, TrialNumber{0}};
  proposal.neighbour_values = {{9, 0.5}, {3, std::numeric_limits<double>::infinity()}};
  proposal.neighbour_values.push_back({4, 0.5, {0.5, 7}});  // of two objectives
  proposal.results_known = 7;
  proposal.pending_known = 3;
  day.tell(TrialProposed{day.trial(), proposal});
  Proposal drawn;
  drawn.origin = ProposalOrigin::kFallback;
  drawn.note = "all results are \"alike\"";
  day.tell(TrialProposed{day.trial(), drawn});
  const std::string experiment = experiment_id_of(story_spec());
  const auto id = [&](std::uint32_t trial) { return trial_id(experiment, TrialNumber{trial}); };
  const std::string of = ",\"trial\":\"" + id(3) + "\",\"attempt\":0,\"origin\":";
  CHECK(day.read() ==
        "{\"time\":1700000000.250,\"event\":\"proposed\"" + of +
            "\"model\",\"results_known\":7,\"pending_known\":3,\"mean\":0.5,\"sd\":0.25,"
            "\"acquisition\":-1.5,\"margin\":0.375,\"neighbours\":[\"" +
            id(2) + "\",\"" + id(0) +
            "\"],\"neighbour_values\":[[9,0.5],[3,\"inf\"],[4,0.5,7.0]]}\n"
            "{\"time\":1700000000.500,\"event\":\"proposed\"" +
            of +
            "\"fallback\",\"results_known\":0,\"pending_known\":0,"
            "\"note\":\"all results are \\\"alike\\\"\"}\n");
}

TEST_CASE("a trial at a rung is a line, also when it goes on") {
  const testing::TemporaryFolder folder;
  Day day(folder.path());
  day.tell(RungReached{day.trial(), 9, RungPlace{9, 0.5, 0.842, 7, 9, 2}, Decision::Kind::kStop});
  day.tell(RungReached{day.trial(), 27, RungPlace{27, 0.5, {}, 1, 1}, Decision::Kind::kContinue});
  const std::string id = trial_id(experiment_id_of(story_spec()), TrialNumber{3});
  const std::string of =
      ",\"event\":\"rung\",\"trial\":\"" + id + "\",\"attempt\":0,\"iteration\":";
  CHECK(day.read() == "{\"time\":1700000000.250" + of +
                          "9,\"milestone\":9.0,\"value\":0.5,\"cut_off\":0.842,\"rank\":7,\"of\":9,"
                          "\"bracket\":2,\"verdict\":\"stop\"}\n"
                          "{\"time\":1700000000.500" +
                          of +
                          "27,\"milestone\":27.0,\"value\":0.5,\"rank\":1,\"of\":1,"
                          "\"verdict\":\"go_on\"}\n");
}

TEST_CASE("a driver that waits for machines says so, and each of them when it is back") {
  EventText text(story_spec());
  AgentHello hello;
  hello.hostname = "node-7";
  text.record(DriverBegan{2, true}, WallTime(std::chrono::seconds(5)));
  text.record(NodeReturned{AgentNumber{3}, hello, 4}, WallTime(std::chrono::seconds(6)));
  CHECK(text.take() ==
        "{\"time\":5.000,\"event\":\"driver_started\",\"epoch\":2,\"keeps\":true}\n"
        "{\"time\":6.000,\"event\":\"node_returned\",\"node\":\"node-7\",\"trials\":4}\n");
}

TEST_CASE("what a pool asks for, and whether it may, are lines with what is known") {
  EventText text(story_spec());
  const auto tell = [&](const Record& record) { text.record(record, std::chrono::seconds(5)); };
  const AllocationChanged asked{7, AllocationState::kRequested, "", "", ""};
  tell(AllocationTold{asked});
  const AllocationChanged queued{7, AllocationState::kQueued, "4711", "", "Priority"};
  tell(AllocationTold{queued});
  const AllocationChanged ended{7, AllocationState::kEnded, "4711", "node-3", "it was lost"};
  tell(AllocationTold{ended});
  const PoolOrdered fewer{.max = 3, .paused = {}, .cause = {}};
  tell(PoolTold{fewer});
  const PoolOrdered paused{.max = {}, .paused = true, .cause = "3 starts went wrong"};
  tell(PoolTold{paused});
  const PoolOrdered drained{.max = {}, .paused = {}, .cause = "ada", .drained = "node-3"};
  tell(PoolTold{drained});
  const std::string of = R"({"time":5.000,"event":"allocation","number":7,"state":)";
  CHECK(text.take() ==
        of + "\"requested\"}\n" + of + "\"queued\",\"id\":\"4711\",\"reason\":\"Priority\"}\n" +
            of +
            "\"ended\",\"id\":\"4711\",\"host\":\"node-3\",\"reason\":\"it was lost\"}\n"
            "{\"time\":5.000,\"event\":\"pool\",\"max\":3}\n"
            "{\"time\":5.000,\"event\":\"pool\",\"paused\":true,"
            "\"cause\":\"3 starts went wrong\"}\n"
            "{\"time\":5.000,\"event\":\"pool\",\"drained\":\"node-3\",\"cause\":\"ada\"}\n");
}

TEST_CASE("every start, end, failure, verdict, node and notice is a line, and nothing else is") {
  const testing::TemporaryFolder folder;
  Day day(folder.path());
  day.morning();
  day.noon();
  day.evening();
  const std::string id = trial_id(experiment_id_of(story_spec()), TrialNumber{3});
  const auto of = [&](const char* attempt) {
    return ",\"trial\":\"" + id + "\",\"attempt\":" + attempt;
  };
  CHECK(
      day.read() ==
      "{\"time\":1700000000.250,\"event\":\"driver_started\",\"epoch\":1}\n"
      "{\"time\":1700000000.500,\"event\":\"node_joined\",\"node\":\"node-7\",\"ip\":\"10.0.0.3\","
      "\"cpus\":4.5,\"gpus\":3,\"memory_bytes\":1048576}\n"
      "{\"time\":1700000001.000,\"event\":\"attempt_started\"" +
          of("1") +
          ",\"node\":\"node-7\",\"pid\":4711,\"gpus\":[0,2],\"after_iteration\":0}\n"
          "{\"time\":1700000001.750,\"event\":\"attempt_ended\"" +
          of("1") +
          ",\"outcome\":\"signal\",\"iteration\":1,\"cause\":\"killed by signal 11 (SIGSEGV)\"}\n"
          "{\"time\":1700000002.250,\"event\":\"failure\"" +
          of("1") +
          ",\"outcome\":\"signal\",\"rank\":2,\"code\":11,"
          "\"cause\":\"killed by signal 11 (SIGSEGV)\",\"failures\":1,\"retried\":true}\n"
          "{\"time\":1700000002.500,\"event\":\"place_set_aside\",\"place\":\"GPU 1 of node-7\"}\n"
          "{\"time\":1700000003.000,\"event\":\"attempt_started\"" +
          of("2") +
          ",\"node\":\"node-7\",\"pid\":4711,\"gpus\":[0,2],\"after_iteration\":1}\n"
          "{\"time\":1700000003.500,\"event\":\"verdict\"" +
          of("2") +
          ",\"iteration\":2,\"verdict\":\"stop\","
          "\"reason\":\"rank 7 of 9 at rung 3, \\\"cut-off\\\" 0.842\"}\n"
          "{\"time\":1700000003.750,\"event\":\"notice\",\"text\":\"two\\nlines, \ufffd and "
          "käse\"}\n"
          "{\"time\":1700000004.000,\"event\":\"notice\",\"text\":\"SIGINT: running trials "
          "save\"}\n"
          "{\"time\":1700000004.250,\"event\":\"attempt_ended\"" +
          of("2") +
          ",\"outcome\":\"stopped\",\"iteration\":2}\n"
          "{\"time\":1700000004.500,\"event\":\"trial_ended\"" +
          of("2") +
          ",\"status\":\"TERMINATED\",\"iteration\":2}\n"
          "{\"time\":1700000004.750,\"event\":\"place_taken_back\",\"place\":\"GPU 1 of node-7\"}\n"
          "{\"time\":1700000005.000,\"event\":\"node_left\",\"node\":\"node-7\","
          "\"cause\":\"its process is gone\"}\n"
          "{\"time\":1700000005.250,\"event\":\"experiment_ended\",\"how\":\"finished\"}\n");
}

TEST_CASE("text in any encoding makes valid JSON, a line each") {
  const std::string texts[] = {"",
                               "\"\\\n\r\t\x01",
                               std::string("a\0b", 3),
                               "\xff\xfe\xc3",
                               "\xed\xa0\x80",
                               "\xf0\x9d\x84\x9e",
                               "caf\xe9 latin-1"};
  const testing::TemporaryFolder folder;
  Day day(folder.path());
  for (const std::string& text : texts) {
    day.tell(Notice{text});
    AttemptEnded ended;
    ended.cause = text;
    day.trial().reason = text;
    day.tell(AttemptOver{day.trial(), ended});
    day.tell(VerdictGiven{day.trial(), 1, StopKind::kPause});
    AgentHello hello;
    hello.hostname = hello.ip = text;
    day.tell(NodeJoined{AgentNumber{1}, hello});
    day.tell(NodeLeft{AgentNumber{1}, hello, text});
    day.tell(PlaceSetAside{text});
    day.tell(AttemptBegan{day.trial(), text, 0});
    day.tell(ExperimentOver{"failed", text});
  }
  const auto lines = split_lines(day.read());
  REQUIRE(lines.size() == 8 * std::size(texts));
  for (const std::string& line : lines) {
    CAPTURE(line);
    CHECK(parse_json(line, "a line").find("event") != nullptr);
  }
}

TEST_CASE("saved, killed later, restored and told on: the same lines once each") {
  const testing::TemporaryFolder undisturbed;
  Day whole(undisturbed.path());
  whole.morning();
  whole.noon();
  whole.evening();
  const std::string wanted = whole.read();

  const testing::TemporaryFolder folder;
  std::string state;
  {
    Day day(folder.path());
    day.morning();
    state = day.log().save().get();
    day.noon();
    day.read();  // a killed driver has written more than its last snapshot knows
  }
  const std::string left = testing::read_text(folder.path() / "events.jsonl");
  REQUIRE(wanted.starts_with(left));
  Day again(folder.path());
  again.is_muted = true;
  again.morning();  // what the snapshot stands for
  again.is_muted = false;
  again.log().restore(state);
  CHECK(testing::read_text(folder.path() / "events.jsonl") == left);  // not before a flush
  again.noon();
  again.evening();
  CHECK(again.read() == wanted);
}

TEST_CASE("told again from the beginning, an earlier driver's lines are made anew") {
  const testing::TemporaryFolder folder;
  {
    Day day(folder.path());
    day.morning();
    day.noon();
    day.read();
  }
  Day again(folder.path());
  again.morning();
  const std::string text = again.read();
  CHECK(split_lines(text).size() == 3);  // the driver, the node, the attempt
  CHECK_FALSE(testing::has(text, "failure"));
}

TEST_CASE("a file that lost what was saved is not gone on with") {
  const testing::TemporaryFolder folder;
  std::string state;
  {
    Day day(folder.path());
    day.morning();
    state = day.log().save().get();
  }
  std::filesystem::remove(folder.path() / "events.jsonl");
  Day again(folder.path());
  again.log().restore(state);
  CHECK_HAS(testing::refusal([&] { again.read(); }, ErrorCode::kIo),
            "events.jsonl: it has 0 bytes");
}

}  // namespace
}  // namespace tune
