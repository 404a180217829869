// The names of a checkpoint's folders. Every process that writes, loads, lists or removes one takes
// them from here.
//
// A final name holds the attempt that saved, so that it is given once and never again. With the
// iteration alone (shorter, and what earlier builds did) a second attempt saves iteration 10 under
// the name that the first one's has, if that one named it and was lost before it told. An attempt
// that is cut off from its driver then replaces the checkpoint of the one that took its place. And
// a driver that removes what lost attempts left cannot tell it from what the next attempt saves:
// when it stands still before that, and another driver takes over where no lock reaches, as on
// another node, it wakes to remove what that one has recorded. Asking first whether there is a
// newer driver does not help: it may come between the answer and the removal. With the attempt in
// the name each touches its own or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/ids.h"

namespace tune {

// "checkpoint_000010", the one after that training_iteration, of a trial's first attempt;
// "checkpoint_000010-a2" of a later one. Attempt 0 stands for any attempt of a build whose names
// did not hold it: "checkpoint_000010".
std::string checkpoint_name(std::uint64_t iteration, AttemptNumber attempt);

struct CheckpointId {
  std::uint64_t iteration = 0;
  AttemptNumber attempt;  // 1 also where an earlier build named a later one's
  friend auto operator<=>(const CheckpointId&, const CheckpointId&) = default;
};
// Which checkpoint has this name; nothing when it is not one that checkpoint_name gives.
std::optional<CheckpointId> checkpoint_of_name(std::string_view name);

// Where the ranks of an attempt write a checkpoint before it is whole, beside its final folder:
// ".checkpoint_000010.tmp-2".
std::string temporary_checkpoint_name(std::uint64_t iteration, AttemptNumber attempt);
// Where an attempt's agent puts what stood in the way of a checkpoint, until it is removed.
std::string replaced_checkpoint_name(AttemptNumber attempt);
// Where a checkpoint of that name is while it is being removed.
std::string removed_checkpoint_name(std::string_view name);
// Whether it is the name of what is being removed.
bool is_removed_checkpoint(std::string_view name);
// Whose temporary or replaced checkpoint has this name; nothing when it is not one.
std::optional<AttemptNumber> attempt_of_temporary(std::string_view name);

}  // namespace tune
