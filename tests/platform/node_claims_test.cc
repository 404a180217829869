#include "core/platform/node_claims.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "platform/surroundings.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

using std::chrono::milliseconds;

Gpu gpu(int number) {
  return {std::to_string(number), "H", 80, "GPU-" + std::to_string(number)};
}
const Gpu kLogical{"7", "logical GPU", 0};

std::vector<std::string> devices(const std::vector<Gpu>& gpus) {
  std::vector<std::string> names;
  for (const Gpu& one : gpus) names.push_back(one.device);
  return names;
}
using Names = std::vector<std::string>;

TEST_CASE("the first GPUs that nobody else has are chosen, as many as are wanted or none") {
  const std::vector<Gpu> visible = {gpu(0), gpu(1), gpu(2), kLogical};
  const Claim other{.pid = 12, .sweep = "results/s", .gpus = {"GPU-0", "GPU-9"}};
  struct Row {
    std::size_t wanted;
    std::vector<Claim> others;
    Names chosen;
  };
  for (const Row& row : {Row{3, {}, {"0", "1", "2"}}, Row{1, {}, {"0"}},
                         Row{2, {other}, {"1", "2"}}, Row{3, {other}, {}}, Row{0, {other}, {}}}) {
    CAPTURE(row.wanted);
    CHECK(devices(choose_gpus(visible, row.wanted, row.others).chosen) == row.chosen);
  }
  const GpuChoice none = choose_gpus(visible, 3, {other});
  CHECK(describe_taken(none, 3, 4) ==
        "3 GPUs of 4 are wanted, but GPU 0 (H, GPU-0) is used by process 12 (results/s)");
}

TEST_CASE("CPUs are promised twice when all promises are more than the CPUs that sweeps share") {
  const Claim own{.pid = 1, .sweep = "own", .cpu_units = 2 * kUnit, .cpu_set = "1111"};
  const auto other = [](std::int64_t cpus, const char* set) {
    return Claim{.pid = 12, .sweep = "results/s", .cpu_units = cpus * kUnit, .cpu_set = set};
  };
  CHECK(describe_shared_cpus(own, {}).empty());
  CHECK(describe_shared_cpus(own, {other(2, "1111")}).empty());      // 2 + 2 of 4
  CHECK(describe_shared_cpus(own, {other(4, "00001111")}).empty());  // other CPUs
  CHECK_HAS(describe_shared_cpus(own, {other(3, "0001")}),
            "another sweep, process 12 (results/s), has promised 3 of 4 CPUs, and this one "
            "promises 2");
  CHECK_FALSE(describe_shared_cpus(own, {other(1, "1"), other(2, "1")}).empty());  // 2 + 1 + 2
}

TEST_CASE("a claim is read as it was written, and what cannot be read claims nothing") {
  const Claim claim{12, "results/\"s\"", {"GPU-1", "MIG-2"}, 3 * kUnit, "101"};
  CHECK(claim_of_text(to_text(claim)) == claim);
  for (const char* text : {"", "{}", "[1]", "{\"pid\": \"x\"}"}) {
    CAPTURE(text);
    CHECK(claim_of_text(text) == Claim{});
  }
}

// Sweeps of one user on one node.
struct Node {
  TemporaryFolder base;
  ScopedVariable variable{"XDG_RUNTIME_DIR", base.path()};

  static ClaimRequest request(std::vector<Gpu> gpus, const char* sweep) {
    ClaimRequest claim;
    claim.sweep = sweep;
    claim.node.gpus = std::move(gpus);
    claim.needs_gpus = true;
    claim.look_every = milliseconds(1);
    return claim;
  }
};

TEST_CASE("a GPU that another sweep has is refused, naming its process and folder") {
  const Node node;
  std::optional<RuntimeDirectory> first(std::in_place);
  const RuntimeDirectory second;
  claim_node(*first, Node::request({gpu(0)}, "results/first"));
  const ClaimRequest wish = Node::request({gpu(0), gpu(1)}, "results/second");
  const std::string message = refusal([&] { claim_node(second, wish); });
  CHECK_HAS(message, "GPU 0 (H, GPU-0) is used by process " + std::to_string(::getpid()) +
                         " (results/first): wait for it with --wait-gpus");
  first.reset();  // its processes are gone
  CHECK(devices(claim_node(second, wish).gpus) == Names{"0", "1"});
}

TEST_CASE("of more GPUs than are wanted the free ones are taken") {
  const Node node;
  const RuntimeDirectory first, second;
  claim_node(first, Node::request({gpu(0)}, "results/first"));
  ClaimRequest wish = Node::request({gpu(0)}, "results/second");
  wish.visible = {gpu(0), gpu(1)};
  CHECK(devices(claim_node(second, wish).gpus) == Names{"1"});
}

TEST_CASE("sweeps that only count GPUs, or use none, do not get in each other's way") {
  const Node node;
  const RuntimeDirectory first, second, third;
  for (const RuntimeDirectory* folder : {&first, &second}) {
    CHECK(devices(claim_node(*folder, Node::request({kLogical}, "s")).gpus) == Names{"7"});
  }
  claim_node(first, Node::request({gpu(0)}, "s"));
  ClaimRequest without = Node::request({gpu(0)}, "without");
  without.needs_gpus = false;
  CHECK(devices(claim_node(third, without).gpus) == Names{"0"});
}

TEST_CASE("a sweep that waits for GPUs says for whom, once, and has them when they are free") {
  const Node node;
  std::optional<RuntimeDirectory> first(std::in_place);
  const RuntimeDirectory second;
  claim_node(*first, Node::request({gpu(0)}, "results/first"));
  ClaimRequest wish = Node::request({gpu(0)}, "results/second");
  wish.waits = true;
  std::vector<std::string> told;
  wish.notice = [&](const std::string& text) { told.push_back(text); };
  wish.look_every = std::chrono::milliseconds(1);
  int waits = 0;
  wish.meanwhile = [&] {
    if (++waits == 3) first.reset();
  };
  CHECK(devices(claim_node(second, wish).gpus) == Names{"0"});
  CHECK(waits == 3);
  REQUIRE(told.size() == 1);
  CHECK_HAS(told[0], "(results/first): waiting");
}

TEST_CASE("a killed sweep claims nothing, one whose children live still does") {
  const Node node;
  Child sweep([] {
    auto* folder = new RuntimeDirectory;
    claim_node(*folder, Node::request({gpu(0)}, "results/killed"));
  });
  const RuntimeDirectory own;
  const ClaimRequest wish = Node::request({gpu(0)}, "results/own");
  CHECK_HAS(refusal([&] { claim_node(own, wish); }), std::to_string(sweep.pid()));
  sweep.end();
  CHECK(devices(claim_node(own, wish).gpus) == Names{"0"});
}

TEST_CASE("CPUs that another sweep has promised are a notice") {
  const Node node;
  const RuntimeDirectory first, second;
  ClaimRequest claim = Node::request({}, "results/first");
  claim.node.cpu_units = 100'000 * kUnit;
  std::vector<std::string> told;
  claim.notice = [&](const std::string& text) { told.push_back(text); };
  claim_node(first, claim);
  CHECK(told.empty());
  claim_node(second, claim);
  REQUIRE(told.size() == 1);
  CHECK_HAS(told[0], "(results/first), has promised 100000 of");
}

TEST_CASE("a claim is taken over by the process that goes on") {
  const Node node;
  const RuntimeDirectory folder;
  take_claim_over(folder.path());  // there is none
  const Claim other{.pid = 12, .sweep = "results/s", .gpus = {"GPU-0"}, .cpu_units = kUnit};
  std::ofstream(folder.path() / "claim") << to_text(other);
  take_claim_over(folder.path());
  Claim own = other;
  own.pid = ::getpid();
  CHECK(claim_of_text(read_text(folder.path() / "claim")) == own);
}

}  // namespace
}  // namespace tune::testing
