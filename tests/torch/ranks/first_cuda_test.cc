// A rank's first calls of CUDA.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <memory>
#include <string>

#include "core/refusal.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

struct Said {
  std::string text;  // of stdout and stderr
  int code = -1;
  std::string calls;  // of the library that stands for CUDA's
};

// A rank of a program that is linked with tune::torch and uses nothing of it.
Said rank_with(const std::string& environment) {
  const testing::TemporaryFolder folder;
  const auto log = folder.path() / "log";
  const std::string command =
      "FAKE_CUDA_LOG=" + log.string() + " " + environment + " " + TUNE_LINKS_TORCH + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Said said;
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) said.text += buffer;
  said.code = WEXITSTATUS(::pclose(pipe));
  if (std::filesystem::exists(log)) said.calls = testing::read_text(log);
  return said;
}

const std::string kFake = std::string("TUNE_CUDA_PART=") + TUNE_FAKE_CUDA_PART;

TEST_CASE("a rank that sees GPUs loads CUDA first, whatever the program uses of tune::torch") {
  const Said with_gpu = rank_with("CUDA_VISIBLE_DEVICES=0 " + kFake);
  CHECK(with_gpu.calls == "loaded\n");
  CHECK(with_gpu.text == "begins\n");
  const Said without = rank_with("CUDA_VISIBLE_DEVICES= " + kFake);
  CHECK(without.calls.empty());
  CHECK(without.text == "begins\n");
}

TEST_CASE("a rank whose program asked for CUDA too early ends, and names the likely calls") {
  const Said said = rank_with("CUDA_VISIBLE_DEVICES=0 FAKE_CUDA_WAS_ASKED=1 " + kFake);
  CHECK(said.code == 1);
  CHECK_HAS(said.text,
            "error: cannot use the GPUs: LibTorch was asked for CUDA "
            "(torch::manual_seed, torch::cuda::is_available");
  CHECK_HAS(said.text, "seed by tune::seed_all");
}

TEST_CASE("a rank whose CUDA cannot be loaded says so, and begins") {
  const Said said = rank_with("CUDA_VISIBLE_DEVICES=0 TUNE_CUDA_PART=/no/such/library.so");
  CHECK(said.code == 0);
  CHECK_HAS(said.text, "LibTorch computes on CPUs: cannot use the GPUs: the CUDA part");
  CHECK_HAS(said.text, "/no/such/library.so");
  CHECK(said.text.ends_with("begins\n"));
}

}  // namespace
}  // namespace tune
