#include "core/agent/agent_program.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/platform/child.h"
#include "core/platform/runtime_directory.h"
#include "core/refusal.h"

using namespace tune;

TEST_CASE("an agent that is executed gets every option") {
  AgentOptions options;
  options.driver_address = "ipc:///run/driver";
  options.driver_alive_fd = 7;
  options.stays_as = "node-1";
  options.runtime_directory = "/run/tune-1";
  options.resources = {30'000, std::int64_t{1} << 36, {{"0", "H200", 150}, {"GPU-1", "A100", 80}}};
  options.hostname = "node1";
  options.ip = "10.0.0.1";
  options.zygote_command = {"/bin/program", "--flag", "{control}"};
  options.zygote_environment = {{"TUNE_PROGRAM_CALL", "{\"control\": \"{control}\"}"}};
  options.zygote_loads = "the program";
  options.zygote_log = "/results/x/zygote.log";
  options.trial_memory_bytes = 4096;
  options.lock_fd = 5;
  options.runtime_lock_fd = 6;
  const AgentOptions got = unpacked_options(packed_options(options));
  CHECK(got.driver_address == options.driver_address);
  CHECK(got.driver_alive_fd == 7);
  CHECK(got.stays_as == "node-1");
  CHECK(got.runtime_directory == options.runtime_directory);
  CHECK(got.resources == options.resources);
  CHECK(got.hostname == options.hostname);
  CHECK(got.ip == options.ip);
  CHECK(got.zygote_command == options.zygote_command);
  CHECK(got.zygote_environment == options.zygote_environment);
  CHECK(got.zygote_loads == options.zygote_loads);
  CHECK(got.zygote_log == options.zygote_log);
  CHECK(got.trial_memory_bytes == 4096);
  CHECK(got.lock_fd == 5);
  CHECK(got.runtime_lock_fd == 6);
  CHECK_FALSE(got.zygote);
}

// Else what its driver claimed there is free as soon as the driver is killed, though workers live
// on.
TEST_CASE("an agent that is executed holds the runtime folder") {
  const RuntimeDirectory folder;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const FileDescriptor ours(ends[1]);
  AgentOptions options;
  options.driver_alive_fd = ends[0];
  options.driver_address = "ipc://" + (folder.path() / "driver").string();
  options.runtime_directory = folder.path();
  options.hostname = "node1";
  options.zygote_command = {"/bin/false"};
  options.zygote_log = "/dev/null";
  options.runtime_lock_fd = folder.lock_descriptor();
  Child agent(start_agent_program(options));
  close(ends[0]);
  const auto descriptors = "/proc/" + std::to_string(agent.pid()) + "/fd";
  CHECK(std::filesystem::read_symlink(descriptors + "/" +
                                      std::to_string(folder.lock_descriptor())) == folder.path());
}

TEST_CASE("an order for an agent that is cut short is refused") {
  const std::string bytes = packed_options({});
  CHECK_THROWS_AS(unpacked_options(bytes.substr(0, bytes.size() - 1)), Error);
}
