// The size of a turn, and what waits for one.
#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

#include "tune/drive/driver_script.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using Script = testing::DriverScript;
using testing::is;
using testing::joined_hello;
using testing::text_of;

constexpr std::size_t kMegabyte = 1u << 20;

TEST_CASE("what agents tell is cut into turns by its size, in order") {
  Script script;
  const std::size_t each = DriverMachine::kMaxTurnBytes / 4;  // and a little more: 3 fit
  for (const char* name : {"1", "2", "3", "4", "5", "6", "7"}) {
    script.hear_text("a", name + std::string(each, ' '));
  }
  std::string order;
  std::vector<std::size_t> sizes;
  std::vector<std::uint64_t> told;  // up to where, turn by turn
  while (script.machine.has_more(script.peers)) {
    const std::vector<Event> events = script.turn();
    for (const Event& event : events) order += text_of(event).front();
    sizes.push_back(events.size());
    told.push_back(script.contents.heard.at(AgentNumber{0}).sequence);
  }
  CHECK(order == "1234567");
  CHECK(sizes == std::vector<std::size_t>{3, 3, 1});
  CHECK(told == std::vector<std::uint64_t>{3, 6, 7});
  CHECK(script.turn().empty());
}

TEST_CASE("an event that is larger than a turn may be is a turn of its own") {
  Script script;
  script.hear_text("a", "small");
  script.hear_text("a", std::string(DriverMachine::kMaxTurnBytes + kMegabyte, 'x'));
  script.hear_text("a", "small");
  for (int turn = 0; turn < 3; ++turn) CHECK(script.turn().size() == 1);
  CHECK_FALSE(script.machine.has_more(script.peers));
}

UserOrdered order_with(const std::string& text) {
  UserOrdered order;
  order.text = text;
  return order;
}

TEST_CASE("orders and events of a pool count for the size of a turn, and come last in it") {
  Script script;
  const std::string third(DriverMachine::kMaxTurnBytes / 3, ' ');  // and a little more: 2 fit
  for (const char* name : {"1", "2", "3"}) script.machine.on_order(order_with(name + third));
  script.machine.on_pool(PoolOrdered{});
  script.hear_text("a", "a" + third);
  script.hear_text("a", "b");
  const auto shape = [&] {
    std::string all;
    for (const Event& event : script.turn()) {
      const auto* order = std::get_if<UserOrdered>(&event);
      if (order != nullptr) all += order->text.front();
      if (is<PoolOrdered>(event)) all += 'p';
      if (is<FromAgent>(event)) all += text_of(event).front();
    }
    return all;
  };
  CHECK(shape() == "p12");
  CHECK(script.machine.has_more(script.peers));
  CHECK(shape() == "ab3");
  CHECK_FALSE(script.machine.has_more(script.peers));
}

TEST_CASE("without turns no more is taken of agents than a limit, and none of them is lost by it") {
  Script script({.ends_with_agent = false, .lease = 60s});
  script.hear("a", {joined_hello()});
  const std::string text(DriverMachine::kMaxTurnBytes - kMegabyte, ' ');
  std::size_t told = 0;
  for (; script.machine.room_for_told() > 0; ++told) script.hear_text("a", text);
  CHECK(told == 10);  // 64 / 7 = 9.1
  script.pass(600s);  // what it says meanwhile is not read
  std::size_t turns = 0;
  for (; script.machine.has_more(script.peers); ++turns) {
    for (const Event& event : script.turn()) CHECK_FALSE(is<AgentLost>(event));
  }
  CHECK(turns == told);
  CHECK(script.machine.room_for_told() == DriverMachine::kMaxToldBytes);
  script.pass(61s);  // now it is silent
  const std::vector<Event> events = script.turn();
  REQUIRE(events.size() == 1);
  CHECK(is<AgentLost>(events[0]));
}

TEST_CASE("of more notices than are kept until a turn their number is told") {
  Script script;
  for (std::size_t i = 0; i < DriverMachine::kMaxNotices + 3; ++i) script.machine.on_notice("one");
  CHECK(script.turn().empty());
  REQUIRE(script.contents.notices.size() == DriverMachine::kMaxNotices + 1);
  CHECK(script.contents.notices.back() == "3 more notices are not kept");
  script.machine.on_notice("two");
  CHECK(script.turn().empty());
  CHECK(script.contents.notices == std::vector<std::string>{"two"});
}

}  // namespace
}  // namespace tune
