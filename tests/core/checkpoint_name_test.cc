#include "core/checkpoint_name.h"

#include <doctest/doctest.h>

namespace tune {
namespace {

TEST_CASE("a checkpoint's name holds its iteration and, after the first, its attempt") {
  const struct {
    CheckpointId id;
    const char* name;
  } cases[] = {
      {{10, {1}}, "checkpoint_000010"},
      {{10, {2}}, "checkpoint_000010-a2"},
      {{0, {12}}, "checkpoint_000000-a12"},
      {{12345678, {1}}, "checkpoint_12345678"},
      {{~0ULL, {~0U}}, "checkpoint_18446744073709551615-a4294967295"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.name);
    CHECK(checkpoint_name(one.id.iteration, one.id.attempt) == one.name);
    CHECK(checkpoint_of_name(one.name) == one.id);
  }
  // Of a build whose names did not hold it.
  CHECK(checkpoint_name(10, AttemptNumber{}) == "checkpoint_000010");
}

TEST_CASE("what is not a checkpoint's name is not read as one") {
  for (const char* name : {"",
                           "checkpoint_",
                           "checkpoint_10",
                           "checkpoint_0000010",
                           "checkpoint_000010-a1",
                           "checkpoint_000010-a0",
                           "checkpoint_000010-a02",
                           "checkpoint_000010-a",
                           "checkpoint_-a2",
                           "checkpoint_000010-a-2",
                           "checkpoint_000010-a2-a2",
                           "checkpoint_000010 ",
                           "checkpoint_+00010",
                           "checkpoint_000010-a4294967296",
                           "checkpoint_18446744073709551616",
                           "checkpoint_best",
                           "a_checkpoint_000010",
                           ".checkpoint_000010",
                           ".checkpoint_000010.tmp-2",
                           "Checkpoint_000010"}) {
    CAPTURE(name);
    CHECK_FALSE(checkpoint_of_name(name));
  }
}

TEST_CASE("a checkpoint that is not whole has a name of its own, which says whose it is") {
  CHECK(temporary_checkpoint_name(10, AttemptNumber{2}) == ".checkpoint_000010.tmp-2");
  CHECK(attempt_of_temporary(".checkpoint_000010.tmp-2") == AttemptNumber{2});
  CHECK(attempt_of_temporary(replaced_checkpoint_name(AttemptNumber{3})) == AttemptNumber{3});
  const std::string gone = removed_checkpoint_name("checkpoint_000010-a2");
  CHECK(gone == ".checkpoint_000010-a2.tmp-gone");
  CHECK(is_removed_checkpoint(gone));
  for (const char* name : {"checkpoint_000010", "checkpoint_000010-a2", ".checkpoint_000010",
                           "checkpoint_000010.tmp-2", ".checkpoint_000010.tmp-", ".other.tmp-2",
                           ".checkpoint_000010.tmp-2x", ".checkpoint_000010.tmp--2"}) {
    CAPTURE(name);
    CHECK_FALSE(attempt_of_temporary(name));
    CHECK_FALSE(is_removed_checkpoint(name));
  }
  CHECK_FALSE(attempt_of_temporary(gone));
  CHECK_FALSE(is_removed_checkpoint(".checkpoint_000010.tmp-2"));
}

}  // namespace
}  // namespace tune
