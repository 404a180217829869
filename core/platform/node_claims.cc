#include "core/platform/node_claims.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "core/value.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kClaimFile = "claim";
constexpr std::chrono::milliseconds kClaimRetry{20};
constexpr int kMaxTries = 250;  // while other sweeps read and write their claims

// While it lives, no other sweep of this user looks at claims or makes one.
class Turn {
 public:
  explicit Turn(const fs::path& base)
      : folder_(::open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    // Another program may lock that folder for reasons of its own: the wait has an end.
    for (int tries = 0; tries < kMaxTries; ++tries) {
      if (::flock(folder_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
      std::this_thread::sleep_for(kClaimRetry);
    }
  }

 private:
  FileDescriptor folder_;
};

std::vector<Claim> other_claims(const RuntimeDirectory& own) {
  std::vector<Claim> claims;
  for (const fs::path& folder : live_runtime_directories(own.path().parent_path())) {
    if (folder == own.path()) continue;
    try {
      Claim claim = claim_of_text(read_file(folder / kClaimFile));
      if (claim.pid != 0) claims.push_back(std::move(claim));
    } catch (const Error&) {  // it has none yet, or is gone by now
    }
  }
  return claims;
}

std::string own_cpu_set() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string digits;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return digits;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) digits += CPU_ISSET(cpu, &set) ? '1' : '0';
  while (digits.ends_with('0')) digits.pop_back();
  return digits;
}

bool is_real(const Gpu& gpu) {
  return !gpu.uuid.empty();
}

bool share_cpus(const std::string& a, const std::string& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == '1' && b[i] == '1') return true;
  }
  return false;
}

std::string name_of(const Claim& claim) {
  return fmt::format("process {} ({})", claim.pid, claim.sweep);
}

double cpus(std::int64_t units) {
  return static_cast<double>(units) / kUnit;
}

}  // namespace

NodeResources claim_node(const RuntimeDirectory& folder, const ClaimRequest& request) {
  NodeResources node = request.node;
  const std::vector<Gpu>& visible = request.visible.empty() ? node.gpus : request.visible;
  const auto wanted = request.needs_gpus
                          ? static_cast<std::size_t>(std::ranges::count_if(node.gpus, is_real))
                          : std::size_t{0};
  Claim own{.pid = ::getpid(),
            .sweep = request.sweep,
            .cpu_units = node.cpu_units,
            .cpu_set = own_cpu_set()};
  for (bool told = false;; std::this_thread::sleep_for(request.look_every)) {
    if (told && request.meanwhile) request.meanwhile();
    const Turn turn(folder.path().parent_path());
    const std::vector<Claim> others = other_claims(folder);
    const GpuChoice choice = choose_gpus(visible, wanted, others);
    if (choice.chosen.size() == wanted) {
      std::ranges::copy(choice.chosen, node.gpus.begin());  // logical ones come after
      for (const Gpu& gpu : choice.chosen) own.gpus.push_back(gpu.uuid);
      ReplacedFile claim(folder.path() / kClaimFile);
      claim.write(to_text(own));
      claim.commit(Flush::kNo);  // it ends with this process
      const std::string shared = describe_shared_cpus(own, others);
      if (!shared.empty() && request.notice) request.notice(shared);
      return node;
    }
    const std::string why = describe_taken(choice, wanted, visible.size());
    if (!request.waits) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("{}: wait for {} with --wait-gpus, or choose others with --gpus or "
                              "CUDA_VISIBLE_DEVICES",
                              why, choice.taken.size() == 1 ? "it" : "them"));
    }
    if (!std::exchange(told, true) && request.notice) request.notice(why + ": waiting for them");
  }
}

void take_claim_over(const fs::path& folder) try {
  Claim claim = claim_of_text(read_file(folder / kClaimFile));
  if (claim.pid == 0) return;
  claim.pid = ::getpid();
  ReplacedFile file(folder / kClaimFile);
  file.write(to_text(claim));
  file.commit(Flush::kNo);
} catch (const Error&) {  // it holds as it stands
}

std::string to_text(const Claim& claim) {
  Value::List gpus(claim.gpus.begin(), claim.gpus.end());
  const Value value{{"pid", claim.pid},
                    {"sweep", claim.sweep},
                    {"gpus", std::move(gpus)},
                    {"cpu_units", claim.cpu_units},
                    {"cpu_set", claim.cpu_set}};
  return to_json(value) + "\n";
}

Claim claim_of_text(std::string_view text) try {
  const Value value = parse_json(text, "a claim");
  Claim claim;
  claim.pid = value.get<int>("pid");
  claim.sweep = value.get<std::string>("sweep");
  claim.gpus = value.get<std::vector<std::string>>("gpus");
  claim.cpu_units = value.get<std::int64_t>("cpu_units");
  claim.cpu_set = value.get<std::string>("cpu_set");
  return claim;
} catch (const Error&) {
  return {};
}

GpuChoice choose_gpus(const std::vector<Gpu>& visible, std::size_t wanted,
                      const std::vector<Claim>& others) {
  GpuChoice choice;
  for (const Gpu& gpu : visible) {
    if (!is_real(gpu)) continue;
    const auto holder = std::ranges::find_if(others, [&](const Claim& claim) {
      return std::ranges::find(claim.gpus, gpu.uuid) != claim.gpus.end();
    });
    if (holder != others.end()) {
      choice.taken.emplace_back(gpu, *holder);
    } else if (choice.chosen.size() < wanted) {
      choice.chosen.push_back(gpu);
    }
  }
  if (choice.chosen.size() < wanted) choice.chosen.clear();
  return choice;
}

std::string describe_taken(const GpuChoice& choice, std::size_t wanted, std::size_t visible) {
  std::string text;
  for (const auto& [gpu, claim] : choice.taken) {
    text += fmt::format("{}GPU {} ({}, {}) is used by {}", text.empty() ? "" : ", ", gpu.device,
                        gpu.name, gpu.uuid, name_of(claim));
  }
  return fmt::format("{} GPUs of {} are wanted, but {}", wanted, visible, text);
}

std::string describe_shared_cpus(const Claim& own, const std::vector<Claim>& others) {
  const auto available = std::ranges::count(own.cpu_set, '1') * kUnit;
  std::int64_t promised = 0;
  std::string holders;
  for (const Claim& other : others) {
    if (!share_cpus(own.cpu_set, other.cpu_set)) continue;
    promised += other.cpu_units;
    holders += (holders.empty() ? "" : ", ") + name_of(other);
  }
  if (promised == 0 || promised + own.cpu_units <= available) return {};
  return fmt::format(
      "another sweep, {}, has promised {:g} of {:g} CPUs, and this one promises {:g}: trials will "
      "share them; give each sweep its part with --cpus",
      holders, cpus(promised), cpus(available), cpus(own.cpu_units));
}

}  // namespace tune
