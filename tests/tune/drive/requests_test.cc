// Requests of other commands: which are read as orders, and when they are answered.
#include "tune/drive/requests.h"

#include <doctest/doctest.h>

#include <chrono>
#include <deque>
#include <future>
#include <string>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/request_socket.h"
#include "core/refusal.h"
#include "memory_store.h"
#include "trainables/temporary_folder.h"
#include "tune/control/scene.h"
#include "tune/drive/driver_machine.h"
#include "tune/drive/journaled_controller.h"

namespace tune {
namespace {

using testing::refusal;

std::deque<Trial> trials_up_to(std::uint32_t last) {
  std::deque<Trial> trials;
  for (std::uint32_t number = 0; number <= last; ++number) {
    trials.emplace_back().number = TrialNumber{number};
  }
  return trials;
}

Value request(const char* what) {
  return Value{{"do", what}, {"user", "ada"}};
}

UserOrdered read(const Value& asked) {
  return order_of(asked, trials_up_to(12), "2f1e0");
}

TEST_CASE("an order names its trial by id, number or the end of the id") {
  for (const char* name : {"7", "2f1e0_00007", "_00007", "00007"}) {
    CAPTURE(name);
    Value asked = request("pause");
    asked.set("trial", name);
    asked.set("reason", "enough");
    const UserOrdered order = read(asked);
    CHECK(order.kind == OrderKind::kPause);
    CHECK(order.trial == TrialNumber{7});
    CHECK(order.user == "ada");
    CHECK(order.text == "enough");
  }
}

TEST_CASE("a trial that is not there is refused, with those that are") {
  for (const char* name : {"13", "x", "", "-1", "7x", "other_00007", "2f1e0_", "../7"}) {
    CAPTURE(name);
    Value asked = request("stop");
    asked.set("trial", name);
    CHECK(refusal([&] { read(asked); }) ==
          fmt::format("there is no trial '{}': there are 2f1e0_00000 to 2f1e0_00012", name));
  }
  Value asked = request("stop");
  asked.set("trial", "0");
  CHECK(refusal([&] { order_of(asked, {}, "2f1e0"); }) ==
        "there is no trial '0': there are none yet");
}

TEST_CASE("configurations, samples and notes are read; what is not one is refused") {
  Value addition = request("add");
  CHECK_HAS(refusal([&] { read(addition); }), "it has to be a map");
  addition.set("config", Value{{"lr", 0.5}});
  CHECK(read(addition).config == pack(Value{{"lr", 0.5}}));
  Value change = request("change");
  change.set("num_samples", 9);
  CHECK(read(change).num_samples == 9);
  Value note = request("note");
  note.set("trial", "0");
  CHECK_HAS(refusal([&] { read(note); }), "a note has to say something");
  note.set("text", std::string(Requests::kMostReasonBytes + 1, 'x'));
  CHECK_HAS(refusal([&] { read(note); }), "text: 2001 bytes, at most 2000 are kept");
  CHECK_HAS(refusal([&] { read(request("dance")); }), "there is no order 'dance'");
}

std::future<std::string> asked(const Requests& requests, const Value& what) {
  return std::async(std::launch::async,
                    [path = requests.path(), text = to_json(what)] { return ask(path, text); });
}

bool is_there(const std::future<std::string>& answer) {
  return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

TEST_CASE("an order is answered when the controller has decided, and refused at the driver's end") {
  const testing::TemporaryFolder folder;
  testing::MemoryStore store;
  testing::Scene scene({.num_samples = 2, .cpus = 1});
  JournaledController experiment(store, scene.setup(), nullptr);
  DriverMachine machine({});
  Value change = request("change");
  change.set("num_samples", 5);
  // The order of the next turn; looks for requests until there is one.
  const auto next_order = [&](Requests& requests) {
    while (true) {
      requests.look();
      const auto turn = machine.next_turn(std::chrono::seconds(1), std::nullopt, Peers(1));
      if (turn) return std::get<UserOrdered>(turn->events.front());
    }
  };
  std::future<std::string> unanswered;
  {
    Requests requests(folder.path());
    std::future<std::string> early = asked(requests, change);
    while (!is_there(early)) requests.look();
    CHECK(early.get() == R"({"error":"this driver cannot change"})");
    requests.take_orders(experiment, "2f1e0", machine);
    requests.answer_by("sing", [](const Value&) { return std::string("la"); });
    std::future<std::string> sung = asked(requests, request("sing"));
    while (!is_there(sung)) requests.look();
    CHECK(sung.get() == R"({"done":"la"})");

    std::future<std::string> first = asked(requests, change);
    const UserOrdered order = next_order(requests);
    CHECK(order.num_samples == 5);
    CHECK_FALSE(is_there(first));
    requests.answer({order.ticket, false, "too few"});
    requests.answer({order.ticket, true, "nobody waits for it any more"});
    CHECK(first.get() == R"({"error":"too few"})");

    unanswered = asked(requests, change);
    next_order(requests);
  }
  CHECK(unanswered.get() == R"({"error":"the driver ends, and has not done it"})");
}

TEST_CASE("a request that is worked on beside the loop is answered when that is done") {
  const testing::TemporaryFolder folder;
  std::future<std::string> unanswered;
  std::promise<std::string> never;
  {
    Requests requests(folder.path());
    std::promise<std::string> work;
    int begun = 0;
    requests.answer_after("paint", [&](const Value&) {
      ++begun;
      return work.get_future().share();
    });
    for (const bool succeeds : {true, false}) {
      work = {};
      std::future<std::string> painted = asked(requests, request("paint"));
      for (const int before = begun; begun == before;) requests.look();
      requests.look();
      CHECK_FALSE(is_there(painted));
      if (succeeds) {
        work.set_value("red");
      } else {
        work.set_exception(std::make_exception_ptr(Error(ErrorCode::kIo, "no paint")));
      }
      while (!is_there(painted)) requests.look();
      CHECK(painted.get() == (succeeds ? R"({"done":"red"})" : R"({"error":"no paint"})"));
    }
    requests.answer_after("wait", [&](const Value&) {
      ++begun;
      return never.get_future().share();
    });
    unanswered = asked(requests, request("wait"));
    for (const int before = begun; begun == before;) requests.look();
  }
  CHECK(unanswered.get() == R"({"error":"the driver ends, and has not done it"})");
}

TEST_CASE("while the store is silent orders are refused at once") {
  const testing::TemporaryFolder folder;
  testing::MemoryStore store;
  testing::Scene scene({.num_samples = 2, .cpus = 1});
  JournaledController experiment(store, scene.setup(), nullptr);
  DriverMachine machine({});
  machine.on_store_silent("the server hangs");
  Requests requests(folder.path());
  requests.take_orders(experiment, "2f1e0", machine);
  std::future<std::string> answer = asked(requests, request("change"));
  while (!is_there(answer)) requests.look();
  CHECK(answer.get() == R"({"error":"the store does not answer now: give the order again later"})");
}

}  // namespace
}  // namespace tune
