// States and journals of builds before this one.
#include <doctest/doctest.h>

#include <string>

#include "tune/control/pool_book.h"
#include "tune/control/scene.h"

namespace tune {
namespace {

using testing::Scene;

// The end of a state, after the healths.
std::string since_places(std::uint32_t contract) {
  PackWriter out;
  DeviceHealth().save(out);
  out.map(0);  // no node is out
  encode(out, contract);
  return out.take();
}

std::string since_asking(bool asks_late) {
  PackWriter out;
  encode(out, asks_late);
  Asking().save(out);
  return out.take();
}

// No user has ordered anything.
std::string since_orders(std::int64_t num_samples) {
  PackWriter out;
  encode(out, num_samples);
  encode(out, num_samples);
  encode(out, false);
  return out.take();
}

TEST_CASE(
    "a state of before places were watched, trials drawn late, nodes joined, pools or orders is "
    "taken") {
  Scene scene({.num_samples = 2, .asks_late = false});
  scene.join();
  scene.give_report(0, 1, 0.5);
  const std::string state = scene.controller_.save();
  const std::string asking = since_asking(false);
  PackWriter end;
  encode(end, false);  // no node may join
  end.map(0);          // and none was given up
  const std::string joining = end.take();
  PackWriter last;
  encode(last, false);  // no pool
  PoolBook().save(last);
  const std::string pool = last.take();
  const std::string places = since_places(kAgentContract);
  const std::string orders = since_orders(2);
  REQUIRE(state[0] == 8);
  REQUIRE(state.ends_with(places + asking + joining + pool + orders));
  Controller old(scene.setup());
  const std::size_t newer = asking.size() + joining.size() + pool.size() + orders.size();
  const std::string with_places = state.substr(1, state.size() - 1 - newer);
  // The next driver says how many samples there are.
  const std::string taken = state.substr(0, state.size() - orders.size()) + since_orders(1);
  old.restore("\x07" + with_places + asking + joining + pool);
  CHECK(old.save() == taken);
  old.restore("\x06" + with_places + asking + joining);
  CHECK(old.save() == taken);
  old.restore("\x05" + with_places + asking);
  CHECK(old.save() == taken);
  old.restore("\x04" + with_places);
  CHECK(old.save() == taken);
  const std::string without = with_places.substr(0, with_places.size() - places.size());
  old.restore("\x03" + without);
  CHECK(old.save() == "\x08" + without + since_places(3) + asking + joining + pool +
                          since_orders(1));  // contract of then
}

TEST_CASE("in a journal of before, a trial is there before there is room for it") {
  Scene before({.num_samples = 4, .cpus = 1, .asks_late = false});
  before.join();
  CHECK(before.controller_.trials().size() == 2);
  before.end(0, Outcome::kCompleted);
  CHECK(before.controller_.trials().size() == 3);
  Scene now({.num_samples = 4, .cpus = 1});
  now.join();
  CHECK(now.controller_.trials().size() == 1);
  now.end(0, Outcome::kCompleted);
  CHECK(now.controller_.trials().size() == 2);
  CHECK(now.controller_.trials()[1].config == before.controller_.trials()[1].config);
}

}  // namespace
}  // namespace tune
