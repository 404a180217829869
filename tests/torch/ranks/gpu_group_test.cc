// Groups that speak for tensors on GPUs, with a library that stands for CUDA's and NCCL's.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranks.h"
#include "trainables/rank_failure.h"
#include "trainables/temporary_folder.h"
#include "trainables/torch/group_backends.h"
#include "trainables/torch/sync_batch_norm.h"

namespace tune {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

// The calls of each rank's library; `devices` are the GPUs of the ranks.
std::vector<Lines> calls_of(const Lines& devices,
                            const std::function<void(std::optional<ProcessGroup>&)>& function,
                            bool second_wants_gloo = false) {
  const testing::TemporaryFolder folder;
  const auto log_of = [&](int rank) { return folder.path() / std::to_string(rank); };
  const int size = static_cast<int>(devices.size());
  const auto ends = testing::run_ranks(size, [&](const Rendezvous& place) {
    ::setenv("TUNE_CUDA_PART", TUNE_FAKE_CUDA_PART, 1);
    ::setenv("FAKE_CUDA_LOG", log_of(place.rank).c_str(), 1);
    ::setenv("FAKE_GPU_ID", devices[static_cast<std::size_t>(place.rank)].c_str(), 1);
    const bool wants_gloo = second_wants_gloo && place.rank == 1;
    std::optional<ProcessGroup> group;
    group.emplace(place, GroupOptions{.timeout = 20s,
                                      .device = c10::Device(c10::kCUDA, 0),
                                      .gloo_for_gpu = wants_gloo});
    function(group);
    return std::vector<double>{};
  });
  std::vector<Lines> calls;
  for (int rank = 0; rank < size; ++rank) {
    const testing::RankEnd& end = ends[static_cast<std::size_t>(rank)];
    CHECK_MESSAGE(end.error.empty(), end.error);
    std::istringstream log(std::filesystem::exists(log_of(rank)) ? testing::read_text(log_of(rank))
                                                                 : std::string());
    calls.emplace_back();
    for (std::string line; std::getline(log, line);) calls.back().push_back(line);
  }
  return calls;
}

void nothing(std::optional<ProcessGroup>&) {}

TEST_CASE("ranks with a GPU each speak NCCL, those that share one Gloo") {
  CHECK(calls_of({"a", "b", "c"}, nothing) ==
        std::vector<Lines>(3, {"loaded", "nccl", "shutdown"}));
  CHECK(calls_of({"a", "b", "a"}, nothing) == std::vector<Lines>(3, {"loaded"}));
  CHECK(calls_of({"a", "b"}, nothing, true) == std::vector<Lines>{{"loaded"}, {}});
  CHECK(can_speak_nccl({"a", "b"}));
  CHECK_FALSE(can_speak_nccl({"a", "a"}));
  CHECK_FALSE(can_speak_nccl({"a", ""}));
}

TEST_CASE("layers share the group's NCCL, which ends with the last that holds it") {
  const auto calls = calls_of({"a", "b"}, [](std::optional<ProcessGroup>& group) {
    const NormLayer norm = sync_batch_norm(*group);
    group.reset();
  });
  CHECK(calls == std::vector<Lines>(2, {"loaded", "nccl", "shutdown"}));
  const auto duplicated =
      calls_of({"a", "b"}, [](std::optional<ProcessGroup>& group) { group->duplicate(); });
  CHECK(duplicated == std::vector<Lines>(2, {"loaded", "nccl", "nccl", "shutdown", "shutdown"}));
}

TEST_CASE("after a failure of the rank NCCL is aborted: the others may never shut it down") {
  const Lines aborted = {"loaded", "nccl", "abort"};
  // Thrown through the group's end.
  CHECK(calls_of({"a", "b"}, [](std::optional<ProcessGroup>& group) {
          try {
            const ProcessGroup last = std::move(*group);
            group.reset();
            throw std::runtime_error("a bad image");
          } catch (const std::exception&) {
          }
        }) == std::vector<Lines>(2, aborted));
  // Caught by the worker, which ends the trainable and its group afterwards.
  CHECK(calls_of({"a", "b"}, [](std::optional<ProcessGroup>& group) {
          say_rank_failed();
          group.reset();
        }) == std::vector<Lines>(2, aborted));
  // Of the group.
  CHECK(calls_of({"a", "b"}, [](std::optional<ProcessGroup>& group) {
          group->explain("all_reduce", std::runtime_error("gone"),
                         std::chrono::steady_clock::now());
        }) == std::vector<Lines>(2, aborted));
}

// What own_device() asks of the library for a rank with this part of its GPU.
Lines calls_for_part(const char* part) {
  const testing::TemporaryFolder folder;
  const auto log = folder.path() / "log";
  const auto ends = testing::run_ranks(1, [&](const Rendezvous&) {
    ::setenv("TUNE_CUDA_PART", TUNE_FAKE_CUDA_PART, 1);
    ::setenv("FAKE_CUDA_LOG", log.c_str(), 1);
    ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    ::setenv("TUNE_GPU_PART", part, 1);
    own_device();
    return std::vector<double>{};
  });
  Lines lines;
  std::istringstream said(ends[0].error.empty() ? testing::read_text(log) : ends[0].error);
  for (std::string line; std::getline(said, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("a rank that shares a GPU takes its part of the memory alone") {
  CHECK(calls_for_part("0.25") == Lines{"loaded", "at most 0.250000"});
  CHECK(calls_for_part("1") == Lines{"loaded"});
  CHECK(calls_for_part("") == Lines{"loaded"});
  for (const char* wrong : {"0", "1.5", "half", "-1", "0.5x"}) {
    CAPTURE(wrong);
    CHECK(calls_for_part(wrong) == Lines{"TUNE_GPU_PART is " + std::string(wrong) +
                                         ", a number above 0 and at most 1 is wanted"});
  }
}

}  // namespace
}  // namespace tune
