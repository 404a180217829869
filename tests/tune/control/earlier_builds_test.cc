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

std::string since_returning(std::uint64_t epoch) {
  PackWriter out;
  encode(out, epoch);
  encode(out, std::vector<TrialNumber>());  // no verdict was to be said again,
  encode(out, std::vector<AgentNumber>());  // and no machine was away
  return out.take();
}

TEST_CASE("a state of each build since places were not watched is taken") {
  Scene scene({.num_samples = 2, .asks_late = false});
  scene.join();
  scene.give_report(0, 1, 0.5);
  const std::string now = scene.controller_.save();
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
  const std::string returning = since_returning(1);
  // No attempt is over on one node alone; groups go over several, also without a folder, or did
  // not.
  const std::string groups = "\x80\xc3\xc3";
  const std::string one_folder = "\x80\xc3";
  // Few proposals are asked for at once, and a trial that is kept back is forgotten, or not.
  const std::string few = "\xc3\xc3";
  // A stopped trial that was replaced keeps its origin, or not.
  const std::string keeping = "\xc3";
  const std::string dropping = "\xc2";
  const std::string many = "\xc2\xc2" + dropping;
  const std::string one_node = "\x80\xc2\xc2" + many;
  REQUIRE(now[0] == 13);
  const std::string newest = groups + few + keeping;
  REQUIRE(now.ends_with(places + asking + joining + pool + orders + returning + newest));
  Controller old(scene.setup());
  const std::size_t newer = asking.size() + joining.size() + pool.size() + orders.size() +
                            returning.size() + newest.size();
  const std::string with_places = now.substr(1, now.size() - 1 - newer);
  const std::string before_groups = now.substr(0, now.size() - newest.size());
  // Nothing was kept of a replaced trial that was stopped.
  old.restore("\x0c" + with_places + asking + joining + pool + orders + returning + groups + few);
  CHECK(old.save() == before_groups + groups + few + dropping);
  // Many were asked for at once.
  old.restore("\x0b" + with_places + asking + joining + pool + orders + returning + groups);
  CHECK(old.save() == before_groups + groups + many);
  // Nodes without the experiment's folder took no part in groups.
  old.restore("\x0a" + with_places + asking + joining + pool + orders + returning + one_folder);
  CHECK(old.save() == before_groups + one_folder + "\xc2" + many);
  // Every group was on one node.
  old.restore("\x09" + with_places + asking + joining + pool + orders + returning);
  CHECK(old.save() == before_groups + one_node);
  // The driver's epoch was not kept.
  const std::string ordered = "\x0d" + with_places + asking + joining + pool;
  old.restore("\x08" + with_places + asking + joining + pool + orders);
  CHECK(old.save() == ordered + orders + since_returning(0) + one_node);
  // The next driver says how many samples there are.
  const std::string rest = pool + since_orders(1) + since_returning(0) + one_node;
  const std::string taken = "\x0d" + with_places + asking + joining + rest;
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
  CHECK(old.save() ==
        "\x0d" + without + since_places(3) + asking + joining + rest);  // contract of then
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
