// tune::Distributor: runs one function in several ranks of this machine and returns rank 0's value.
// For one training without a search; a search runs groups of ranks by `ranks` of
// resources_per_trial.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/value.h"
#include "trainables/named_results.h"

namespace tune {

// The place of a rank in its Distributor. The environment says the same, as with torchrun: RANK,
// LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, ...
class RankContext {
 public:
  RankContext(int rank, int world_size, NamedResults results)
      : rank_(rank), world_size_(world_size), results_(std::move(results)) {}
  int rank() const { return rank_; }
  int local_rank() const { return rank_; }
  int world_size() const { return world_size_; }
  const NamedResults& results() const { return results_; }

 private:
  int rank_;
  int world_size_;
  NamedResults results_;
};

// A rank threw, was killed or ended by itself. The message names the rank and the reason.
class RankError : public Error {
 public:
  RankError(int rank, const std::string& message)
      : Error(ErrorCode::kTrialFailed, message), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

struct Distributor {
  int num_processes = 1;
  bool local_mode = true;  // ranks run on this machine; false is refused: there are no others yet
  // Each rank has a GPU of its own, the one of its LOCAL_RANK; more processes than GPUs are reduced
  // to the number of GPUs, with a warning. Without it ranks see no GPU.
  bool use_gpu = true;
  std::filesystem::path folder = {};  // of named results; empty: there are none
  // Called here while the ranks run, after each file that a rank has submitted.
  std::function<void(const std::string& name, const std::filesystem::path& file)> on_result = {};

  // Calls function(arguments...), or function(const RankContext&, arguments...) when it takes one,
  // in each rank, and returns what rank 0 returned: nothing, a number, a bool, text, a vector of
  // those, a Value, Config or Result. The output of ranks has "[rank 1] " before each line.
  //
  // Ranks fork from this process as it stands: data is shared, captured variables work, and their
  // changes stay in the rank. So call it before there are other threads and before CUDA is touched;
  // else it throws Error (kProcess) that names the reason. It returns when every process of every
  // rank is gone. A rank that fails ends the others (SIGTERM, 3 s, SIGKILL), then RankError is
  // thrown. Throws Error (kBadInput) for settings that cannot hold.
  template <class F, class... Arguments>
  auto run(F&& function, Arguments&&... arguments) const {
    constexpr bool kTakesContext =
        std::is_invocable_v<F&, const RankContext&, const std::decay_t<Arguments>&...>;
    const auto call = [&](const RankContext& context) {
      if constexpr (kTakesContext) {
        return std::invoke(function, context, std::as_const(arguments)...);
      } else {
        return std::invoke(function, std::as_const(arguments)...);
      }
    };
    using Returned = std::decay_t<decltype(call(std::declval<const RankContext&>()))>;
    if constexpr (std::is_void_v<Returned>) {
      run_ranks([&](const RankContext& context) {
        call(context);
        return Value();
      });
    } else {
      static_assert(ValueLike<Returned> || std::is_base_of_v<Value, Returned>,
                    "a rank returns nothing, a number, a bool, text, a vector of those or a Value; "
                    "hand out anything else as a file: RankContext::results()");
      const Value value =
          run_ranks([&](const RankContext& context) -> Value { return call(context); });
      using Held = std::conditional_t<std::is_convertible_v<Returned, std::string_view>,
                                      std::string, Returned>;
      return value.template as<Held>();
    }
  }

 private:
  Value run_ranks(const std::function<Value(const RankContext&)>& function) const;
};

}  // namespace tune
