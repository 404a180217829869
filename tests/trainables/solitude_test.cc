#include "trainables/solitude.h"

#include <doctest/doctest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "trainables/access.h"

using namespace tune;

namespace {

TEST_CASE("what is alone within what is alone is told once, and its end at the last") {
  std::string told;
  const SolitudeListener listener([&](bool begins) { told += begins ? '(' : ')'; });
  {
    const Solitude outer;
    { const Solitude inner; }
    CHECK(told == "(");
  }
  CHECK(told == "()");
  { const Solitude again; }
  CHECK(told == "()()");
}

TEST_CASE("a listener that is gone is not told") {
  std::string told;
  { const SolitudeListener listener([&](bool) { told += 'x'; }); }
  const Solitude solitude;
  CHECK(told.empty());
}

TEST_CASE("the newest witness knows whether another rank is alone, in its own thread") {
  CHECK(!is_another_alone());
  {
    const SolitudeWitness first([] { return true; });
    CHECK(is_another_alone() == true);
    const SolitudeWitness second([] { return false; });
    CHECK(is_another_alone() == false);
    std::optional<bool> elsewhere = true;
    std::thread([&] { elsewhere = is_another_alone(); }).join();
    CHECK(!elsewhere);
  }
  CHECK(!is_another_alone());
}

TEST_CASE("a context's alone gives back what its function does, and is over when that throws") {
  std::string told;
  const SolitudeListener listener([&](bool begins) { told += begins ? '(' : ')'; });
  const Context context = ContextBuilder::for_restore("t", "/nowhere", 1, 0);
  CHECK(context.alone([] { return 3.5; }) == 3.5);
  int number = 1;
  context.alone([&]() -> int& { return number; }) = 2;
  CHECK(number == 2);
  context.alone([] {});
  CHECK_THROWS_AS(context.alone([] { throw std::runtime_error("no"); }), std::runtime_error);
  CHECK(told == "()()()()");
}

}  // namespace
