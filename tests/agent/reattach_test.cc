// An agent that outlives its driver: what it says to the next one, and what it does meanwhile.
#include <doctest/doctest.h>

#include "agent/joined_script.h"
#include "core/agent/driver_search.h"
#include "core/platform/files.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

struct ReattachScript : JoinedScript {
  void report(std::uint64_t iteration, bool waiting = false) {
    Reported report;
    report.attempt = {1};
    report.iteration = iteration;
    report.waiting = waiting;
    one().on_worker(now, 1, report);
  }
  // The greeting to a driver of that epoch, which comes before anything else.
  AgentHello greeting(std::uint64_t epoch) {
    said_by();
    one().on_other_driver(now, epoch);
    std::vector<AgentAction> actions;
    one().take_actions(actions);
    one().on_sent();
    REQUIRE(!actions.empty());
    return *std::get<Apart<AgentHello>>(std::get<TellDriver>(actions.front()).event);
  }
};

TEST_CASE("a machine greets each driver that it hears for the first time, and its trial runs on") {
  ReattachScript script;
  script.report(4);
  const AgentHello hello = script.greeting(2);
  CHECK(hello.epoch == 2);
  REQUIRE(hello.live.size() == 1);
  CHECK(hello.live[0].trial == TrialNumber{0});
  CHECK(hello.live[0].attempt == AttemptNumber{1});
  CHECK(hello.live[0].iteration == 4);
  CHECK_FALSE(hello.live[0].waits);
  CHECK_FALSE(hello.live[0].has_order);
  script.one().on_other_driver(script.now, 3);
  CHECK(script.said_by() == Lines{"driver: hello", "driver: ready"});  // and nothing is signalled
  CHECK_FALSE(script.one().joins_again());
}

TEST_CASE("a greeting says which verdicts are awaited, and which orders are there") {
  ReattachScript script;
  script.report(3, true);
  CHECK(script.greeting(2).live.at(0).waits);
  script.one().on_command(script.now, Continue{{0}, {1}, {"training_iteration", 9}});
  CHECK_FALSE(script.greeting(3).live.at(0).waits);
  script.one().on_command(script.now, StopAttempt{{0}, {1}});
  CHECK(script.greeting(4).live.at(0).has_order);
}

TEST_CASE("an attempt whose end is not told yet is live for the next driver") {
  ReattachScript script;
  script.one().on_worker(script.now, 1, WorkerEnded{Outcome::kCompleted, {}});
  script.one().on_exit(script.now, 101, {false, 0, "exited with code 0"});
  CHECK(script.greeting(2).live.size() == 1);  // its last lines are being read
  script.one().on_concluded(script.now, MachineScript::end_of(0));
  CHECK(script.greeting(3).live.empty());
}

TEST_CASE("what the next driver does not know any more is ended") {
  ReattachScript script;
  SetupExperiment setup;
  setup.keep = {attempt_key({0}, {1})};
  script.one().on_command(script.now, setup);
  CHECK(script.said_by().empty());
  setup.keep.clear();
  script.one().on_command(script.now, setup);
  CHECK(script.said_by() == Lines{"signal 15 to 101"});
}

TEST_CASE(
    "a machine that leaves says so to the next driver, and says nothing after its last word") {
  ReattachScript script;
  script.one().on_command(script.now, Drain{"alice drains it"});
  script.live(1ms);
  script.one().on_other_driver(script.now, 2);
  CHECK(script.said_by() ==
        Lines{"driver: hello", "driver: ready", "driver: node out: alice drains it"});
  script.save_and_go();
  script.one().on_other_driver(script.now, 3);
  CHECK(script.said_by().empty());
}

TEST_CASE("a machine whose last driver ended in order ends as well, and waits for no other") {
  ReattachScript script;
  script.one().on_experiment_over(script.now);
  CHECK(script.said_by() == Lines{"end zygote", "signal 15 to 101"});
  CHECK(script.one().end_cause().empty());
  CHECK_FALSE(script.one().joins_again());
}

TEST_CASE("a machine that no driver takes any more saves and ends") {
  ReattachScript script;
  script.one().on_refused(script.now, "this is tune 0.9, the driver is 1.0");
  CHECK(script.live(1ms) ==
        Lines{"driver: node out: this is tune 0.9, the driver is 1.0", "worker 1: stop"});
}

JoinToken join_token_at(const std::string& experiment, const std::string& address) {
  return {
      experiment, std::string(kCurveKeyBytes, 'd'), std::string(kCurveKeyBytes, 'j'), {address}};
}

TEST_CASE("of the files that may name the next driver those of this experiment count") {
  const TemporaryFolder folder;
  const auto joined = folder.path() / "join", own = folder.path() / "own";
  const JoinToken of_own{"0a1b2", std::string(kCurveKeyBytes, 'o'), {}, {}};
  const auto put = [](const auto& file, const std::string& text) {
    write_file_atomically(file, text, Readers::kOwnerOnly);
  };
  const auto found = [&] {
    Lines addresses;
    for (const JoinToken& token : DriverSearch::tokens_in({joined, own}, of_own)) {
      addresses.push_back(token.addresses.at(0));
    }
    return addresses;
  };
  CHECK(found().empty());
  put(joined, to_text(join_token_at("0a1b2", "10.0.0.1:7000")));
  put(own, to_text(join_token_at("0a1b2", "10.0.0.2:7000")));
  CHECK(found() == Lines{"10.0.0.1:7000", "10.0.0.2:7000"});
  put(own, to_text(join_token_at("other", "10.0.0.3:7000")));
  CHECK(found() == Lines{"10.0.0.1:7000"});
  put(own, "tune1.nonsense");
  CHECK(found() == Lines{"10.0.0.1:7000"});
  JoinToken of_several = join_token_at("several", "10.0.0.4:7000");
  of_several.driver_key = of_own.driver_key;
  put(own, to_text(of_several));
  CHECK(found() == Lines{"10.0.0.1:7000", "10.0.0.4:7000"});
}

TEST_CASE("a token that was not there before is taken at once, others in turn") {
  const JoinToken a = join_token_at("0a1b2", "a:1"), b = join_token_at("0a1b2", "b:1"),
                  c = join_token_at("0a1b2", "c:1");
  AgentTime now = 1h;
  TokenChoice choice(a);
  const auto take = [&](const std::vector<JoinToken>& found) -> std::string {
    const auto next = choice.next(now, found);
    if (!next) return {};
    choice.take(now, *next);
    return next->addresses.at(0);
  };
  CHECK(take({a}).empty());
  now += TokenChoice::kTryEach;
  CHECK(take({a}).empty());  // there is no other
  CHECK(take({b, a}) == "b:1");
  CHECK(take({b, a}).empty());
  now += TokenChoice::kTryEach;
  CHECK(take({b}) == "a:1");  // its own first one may be right, though no file has it
  CHECK(take({b, c}) == "c:1");
  now += TokenChoice::kTryEach;
  CHECK(take({b, c}) == "a:1");
  now += TokenChoice::kTryEach;
  CHECK(take({b, c}) == "b:1");
  CHECK(take({c}).empty());
  now += TokenChoice::kTryEach;
  CHECK(take({c}) == "c:1");
  SUBCASE("a replaced join key is no longer good") {
    JoinToken rotated = c;
    rotated.join_key = std::string(kCurveKeyBytes, 'n');
    choice.take(now, rotated);
    now += TokenChoice::kTryEach;
    CHECK(take({rotated}).empty());
  }
}

TEST_CASE("a machine that finds another experiment keeps its trials as long as without a driver") {
  ReattachScript script;
  CHECK(script.one().on_other_experiment(script.now));
  CHECK(script.live(29min, false).empty());
  CHECK_FALSE(script.one().has_lost_driver());
  SUBCASE("its own is back") {
    CHECK(script.live(2min).empty());
    CHECK_FALSE(script.one().has_lost_driver());
  }
  SUBCASE("it is not") {
    CHECK(script.live(2min, false) ==
          Lines{"driver: node out: no driver was heard for 1860 s", "worker 1: stop"});
    script.save_and_go();
    CHECK(script.one().is_over());
    CHECK(script.one().has_lost_driver());
    CHECK_FALSE(script.one().was_told_to_end());
    script.one().on_signal(script.now, "SIGTERM");
    CHECK(script.one().was_told_to_end());
  }
}

TEST_CASE("a machine that has nothing of its own experiment takes part in the other at once") {
  JoinedScript script({}, false);
  script.one().on_backlog(script.now, 0);
  CHECK_FALSE(script.one().on_other_experiment(script.now));
  script.said_by();
  script.one().on_zygote_died(script.now, "killed by signal 9");
  script.live(1ms, false);
  CHECK(script.one().is_over());
  CHECK(script.one().joins_again());
  JoinedScript owes({}, false);
  owes.one().on_backlog(owes.now, 100);
  CHECK(owes.one().on_other_experiment(owes.now));
}

TEST_CASE("a new key is taken over, beside the addresses by which the driver is reached") {
  const auto with_key = [](char key, std::vector<std::string> addresses) {
    return JoinToken{"e", std::string(kCurveKeyBytes, 'd'), std::string(kCurveKeyBytes, key),
                     std::move(addresses)};
  };
  const JoinOptions join{.token = with_key('a', {"127.0.0.1:1"}), .name = "node-1"};
  ReattachScript script;
  AgentEndpoint endpoint(join.token, join.name);
  FileWorker files;
  DriverSearch search(join, {});
  const DriverSearch::Parts parts{script.one(), endpoint, files};
  search.take_token(1s, to_text(with_key('b', {"127.0.0.1:2", "127.0.0.1:1"})), parts);
  CHECK(search.token() == with_key('b', {"127.0.0.1:1", "127.0.0.1:2"}));
  search.take_token(2s, to_text(with_key('b', {"127.0.0.1:3"})), parts);  // told again
  CHECK(search.token() == with_key('b', {"127.0.0.1:1", "127.0.0.1:2"}));
  const std::size_t said = endpoint.unacknowledged_bytes();
  search.take_token(3s, "nonsense", parts);
  CHECK(search.token() == with_key('b', {"127.0.0.1:1", "127.0.0.1:2"}));
  CHECK(endpoint.unacknowledged_bytes() > said);  // the driver is warned
}

}  // namespace
}  // namespace tune::testing
