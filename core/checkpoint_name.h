// The names of a checkpoint's folders. Every process that writes, loads, lists or removes one takes
// them from here.
//
// A final name holds the attempt that saved, so a name is given once and never again. Names with
// the iteration alone (shorter, and used by earlier builds) fail. A first attempt may name its
// checkpoint of iteration 10 and be lost before it tells the driver; the second attempt then saves
// iteration 10 under the same name. So an attempt that is cut off from its driver can replace the
// checkpoint of its successor. And a driver that removes what lost attempts left cannot tell such a
// checkpoint from the next attempt's: if it stalls before the removal, and another driver takes
// over where no lock reaches, as on another node, it wakes and removes what that driver has
// recorded. Asking first whether there is a newer driver does not help: one may come between the
// answer and the removal. With the attempt in the name, each attempt and driver touches its own
// files or none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/ids.h"

namespace tune {

// "checkpoint_000010" for the checkpoint after that training_iteration of a trial's first attempt,
// "checkpoint_000010-a2" for that of its second. Attempt 0 stands for any attempt of an older
// build, whose names did not hold it: "checkpoint_000010".
std::string checkpoint_name(std::uint64_t iteration, AttemptNumber attempt);

struct CheckpointId {
  std::uint64_t iteration = 0;
  AttemptNumber attempt;  // 1 also for a later attempt of an older build
  friend auto operator<=>(const CheckpointId&, const CheckpointId&) = default;
};
// The checkpoint that has this name; nothing when checkpoint_name() never gives it.
std::optional<CheckpointId> checkpoint_of_name(std::string_view name);

// The folder, beside the final one, in which the ranks of an attempt write a checkpoint until it is
// complete: ".checkpoint_000010.tmp-2".
std::string temporary_checkpoint_name(std::uint64_t iteration, AttemptNumber attempt);
// The part of one machine of a group, until all are put together:
// ".checkpoint_000010.part-1.tmp-2"; and while it is on its way.
std::string checkpoint_part_name(std::uint64_t iteration, AttemptNumber attempt,
                                 std::uint32_t node);
std::string incoming_part_name(std::uint64_t iteration, AttemptNumber attempt, std::uint32_t node);
// The name to which an attempt's agent moves a folder that stands in the way of a checkpoint.
std::string replaced_checkpoint_name(AttemptNumber attempt);
// The name of such a checkpoint while it is being removed.
std::string removed_checkpoint_name(std::string_view name);
// Whether a checkpoint that is being removed has this name.
bool is_removed_checkpoint(std::string_view name);
// The attempt whose temporary or replaced checkpoint, or part of one, has this name; nothing when
// there is none.
std::optional<AttemptNumber> attempt_of_temporary(std::string_view name);

}  // namespace tune
