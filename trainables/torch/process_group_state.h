// The inside of a ProcessGroup: how its ranks meet, find out what they can speak, and explain what
// went wrong. The calls themselves are in process_group.cc.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "core/error.h"
#include "trainables/solitude.h"
#include "trainables/torch/group_backends.h"
#include "trainables/torch/late_store.h"
#include "trainables/torch/process_group.h"
#include "trainables/torch/shared_memory_group.h"

namespace tune {

struct ProcessGroup::State {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  Rendezvous place;
  GroupOptions options;
  c10::intrusive_ptr<c10d::Store> store;  // this group's part of it
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::unique_ptr<SolitudeListener> listener;
  std::uint64_t calls = 0;
  int duplicates = 0;
  std::shared_ptr<Nccl> nccl;                         // null: none, or GPUs speak Gloo
  std::unique_ptr<shared_memory::RankMemory> memory;  // while the group forms
  bool has_met = false;                               // all ranks are in that memory and speak so
  c10::intrusive_ptr<SharedMemoryBackend> shared;     // null: CPUs speak Gloo

  bool is_alone() const { return place.size == 1; }
  std::string who() const {
    return "rank " + std::to_string(place.rank) + " of " + std::to_string(place.size);
  }

  // A group of ranks that know of nothing but their place.
  void form_first();
  // `like`: a group of the same ranks, which has found out already what they can speak.
  void form(const State* like = nullptr, bool shares_nccl = false);

  Milliseconds longest() const;  // of a collective
  void expect_other(int rank, const char* operation) const;
  std::string explain(const std::string& what, const std::exception& error,
                      Clock::time_point began);

  // The watch ends it: with a limit NCCL would make the caller wait for the GPU.
  template <class Start>
  void run(const std::string& what, Start&& start) {
    ++calls;
    const auto began = Clock::now();
    try {
      start()->wait();
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kProcess, explain(what, error, began));
    }
  }

 private:
  void meet_in_memory();
  void meet(const State* like);
  void await_all() const;
  c10::intrusive_ptr<LateStore> make_store();
  void reach(const c10::intrusive_ptr<LateStore>& late) const;
  bool speaks_nccl() const;
  GroupTimes start_waiting(bool through_memory);
  std::string absent(const State* like) const;
  std::string others(const std::string& waited_for) const;
};

}  // namespace tune
