// The script by which an engine starts an agent, run by a shell with echo in place of tune.
#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <string>

#include "core/platform/files.h"
#include "trainables/temporary_folder.h"
#include "tune/drive/pool.h"

namespace tune {
namespace {

class AgentScript {
 public:
  explicit AgentScript(const PoolOptions& pool) {
    ExperimentSpec spec;
    spec.name = "s";
    spec.options.pool = pool;
    write_file_atomically(folder_.path() / "agent.sh",
                          agent_script(spec, PoolFiles("/e"), "echo"));
  }
  // The words of the agent that starts as allocation a1 on the host.
  std::string agent(const std::string& host) const {
    const std::string command =
        "sh '" + (folder_.path() / "agent.sh").string() + "' a1 '" + host + "'";
    FILE* output = ::popen(command.c_str(), "r");
    REQUIRE(output != nullptr);
    std::array<char, 512> line{};
    const bool is_read = std::fgets(line.data(), line.size(), output) != nullptr;
    CHECK(::pclose(output) == 0);
    return is_read ? line.data() : "";
  }

 private:
  testing::TemporaryFolder folder_;
};

TEST_CASE("a host's own share comes before that of all hosts") {
  PoolOptions pool;
  pool.engine = "ssh";
  pool.node.cpu = 4;
  pool.node.gpu = 2;
  pool.hosts = {{.name = "alpha"}, {.name = "beta", .cpu = 1}, {.name = "it's", .gpu = 8}};
  const AgentScript script(pool);
  const std::string begin = "agent --join-file /e/nodes/join --drain 120s ";
  CHECK(script.agent("alpha") == begin + "--cpus 4 --gpus 2 --name a1\n");
  CHECK(script.agent("beta") == begin + "--cpus 1 --gpus 2 --name a1\n");
}

TEST_CASE("an agent offers all that its host has unless a share is given") {
  PoolOptions pool;
  pool.engine = "ssh";
  pool.hosts = {{.name = "alpha"}, {.name = "beta", .gpu = 2}};
  const AgentScript script(pool);
  const std::string begin = "agent --join-file /e/nodes/join --drain 120s ";
  CHECK(script.agent("alpha") == begin + "--name a1\n");
  CHECK(script.agent("beta") == begin + "--gpus 2 --name a1\n");
}

}  // namespace
}  // namespace tune
