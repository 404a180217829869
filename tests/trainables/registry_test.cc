#include <string_view>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/worker_contract.h"
#include "trainables/registry.h"

using namespace tune;

namespace {

class Plain : public Trainable {
 public:
  void setup(const Config&) override {}
  Result step() override { return {}; }
};
class Saving : public Plain {
 public:
  void save(const std::filesystem::path&) override {}
  void load(const std::filesystem::path&) override {}
};
class Inheriting : public Saving {};
class OnlySave : public Plain {
 public:
  void save(const std::filesystem::path&) override {}
};
void work(const Config&, Session&) {}

TUNE_TRAINABLE(Saving)
TUNE_FUNCTION(work)
TUNE_TRAINABLE(Plain)

}  // namespace

TEST_CASE("a class can save when it or a base has both save and load") {
  CHECK_FALSE(trainable_entry<Plain>("x").can_save);
  CHECK_FALSE(trainable_entry<OnlySave>("x").can_save);
  CHECK(trainable_entry<Saving>("x").can_save);
  CHECK(trainable_entry<Inheriting>("x").can_save);
}

TEST_CASE("plugin_info lists the registered trainables by name") {
  const tune_plugin_info* info = plugin_info();
  CHECK(info->protocol_version == kWorkerContract);
  REQUIRE(info->count == 3);
  const auto* listed = info->trainables;
  CHECK(std::string_view(listed[0].name) == "Plain");
  CHECK(std::string_view(listed[1].name) == "Saving");
  CHECK(std::string_view(listed[2].name) == "work");
  CHECK(listed[0].can_save == 0);
  CHECK(listed[1].can_save == 1);
  CHECK(listed[1].is_function == 0);
  CHECK(listed[2].is_function == 1);
}

TEST_CASE("a name is given once") {
  CHECK_THROWS_WITH_AS(RegisterTrainable(trainable_entry<Plain>("Plain")),
                       "two trainables are registered as \"Plain\"; rename one of them", Error);
}

TEST_CASE("a trainable without save and load refuses both") {
  Plain plain;
  CHECK_THROWS_AS(plain.save("x"), Error);
  CHECK_THROWS_AS(plain.load("x"), Error);
}
