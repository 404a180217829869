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

TEST_CASE("a state of before places were watched, trials drawn late, nodes joined or pools is taken") {
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
  REQUIRE(state[0] == 7);
  REQUIRE(state.ends_with(places + asking + joining + pool));
  Controller old(scene.setup());
  const std::size_t newer = asking.size() + joining.size() + pool.size();
  const std::string with_places = state.substr(1, state.size() - 1 - newer);
  old.restore("\x06" + with_places + asking + joining);
  CHECK(old.save() == state);
  old.restore("\x05" + with_places + asking);
  CHECK(old.save() == state);
  old.restore("\x04" + with_places);
  CHECK(old.save() == state);
  const std::string without = with_places.substr(0, with_places.size() - places.size());
  old.restore("\x03" + without);
  CHECK(old.save() ==
        "\x07" + without + since_places(3) + asking + joining + pool);  // contract of then
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
