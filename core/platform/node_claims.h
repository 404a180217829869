// NodeClaims: the GPUs and CPUs of a node that the sweeps of one user have promised to their
// trials. Two sweeps never hand out the same GPU, and CPUs that are promised twice are reported.
//
// A claim is a file in a sweep's own runtime folder. It holds as long as a process of the sweep
// (the driver or its agent) has that folder locked; so the claims of a killed driver last until its
// workers are gone. Sweeps of other users, or with another $XDG_RUNTIME_DIR or temporary folder,
// are not seen. A GPU is known by its UUID. Logical GPUs (more than the node has, by the option
// gpus) are numbers that only their own sweep counts: two sweeps that count to four share nothing,
// so these are not claimed.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/platform/runtime_directory.h"
#include "core/resources.h"

namespace tune {

struct Claim {
  int pid = 0;
  std::string sweep;                   // its folder
  std::vector<std::string> gpus = {};  // UUIDs
  std::int64_t cpu_units = 0;
  std::string cpu_set = {};  // one digit a CPU, "1" where the sweep may run
  friend bool operator==(const Claim&, const Claim&) = default;
};

struct ClaimRequest {
  std::string sweep;
  NodeResources node;        // what it would offer
  std::vector<Gpu> visible;  // GPUs to choose from; empty: node.gpus
  bool needs_gpus = false;   // a sweep whose trials use none claims none
  bool waits = false;        // wait until enough GPUs are free
  std::function<void(const std::string& text)> notice = {};
  std::function<void()> meanwhile = {};  // called before each look but the first
  std::chrono::milliseconds look_every = std::chrono::seconds(1);  // while it waits
};

// The node with as many GPUs as it had, none claimed by another sweep, now claimed in that folder.
// Throws Error (kBadInput) that names the holders of the others, unless the request waits for them.
// CPUs that other sweeps have promised too give a notice.
NodeResources claim_node(const RuntimeDirectory& folder, const ClaimRequest& request);

// A process that goes on in that folder without the one that claimed: others are told of it.
void take_claim_over(const std::filesystem::path& folder);

// ---- Without the machine ------------------------------------------------------------------------

std::string to_text(const Claim& claim);
Claim claim_of_text(std::string_view text);  // what cannot be read claims nothing

struct GpuChoice {
  std::vector<Gpu> chosen;  // the first that are free; fewer than wanted: none
  std::vector<std::pair<Gpu, Claim>> taken = {};  // and by whom
};
GpuChoice choose_gpus(const std::vector<Gpu>& visible, std::size_t wanted,
                      const std::vector<Claim>& others);
// "GPU 0 (H200, GPU-1) is used by process 12 (results/s)"; the remedy follows.
std::string describe_taken(const GpuChoice& choice, std::size_t wanted, std::size_t visible);
// The notice about CPUs that are promised twice; empty: none are.
std::string describe_shared_cpus(const Claim& own, const std::vector<Claim>& others);

}  // namespace tune
