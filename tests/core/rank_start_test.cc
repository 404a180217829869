#include "core/rank_start.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace tune {
namespace {

TEST_CASE("what is to be done at a rank's start is done then, in the order it was asked for") {
  static std::string done;
  CHECK(at_rank_start([] { done += "a"; }));
  CHECK(at_rank_start([] { done += "b"; }));
  CHECK(done.empty());
  begin_rank();
  CHECK(done == "ab");
}

TEST_CASE("what throws at a rank's start ends it there, and says why") {
  static std::string done;
  at_rank_start([] { throw std::runtime_error("asked too early"); });
  at_rank_start([] { done += "after"; });
  CHECK_THROWS_WITH(begin_rank(), "asked too early");
  CHECK(done.empty());
}

TEST_CASE("what is to be done in a zygote for trials with GPUs has notices, and ends nothing") {
  CHECK(prepare_gpu_zygote().empty());
  CHECK(at_gpu_zygote_start([] { return std::string(); }));
  CHECK(prepare_gpu_zygote().empty());
  at_gpu_zygote_start([]() -> std::string { throw std::runtime_error("no room"); });
  at_gpu_zygote_start([] { return std::string("no library"); });
  CHECK(prepare_gpu_zygote() == "no room; no library");
}

}  // namespace
}  // namespace tune
