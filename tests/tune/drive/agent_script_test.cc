// The script by which an engine starts an agent, run by a shell with echo in place of tune.
#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "core/platform/files.h"
#include "trainables/temporary_folder.h"
#include "tune/drive/pool.h"

namespace tune {
namespace {

class AgentScript {
 public:
  explicit AgentScript(const PoolOptions& pool) {
    std::filesystem::create_directories(folder_.path() / "nodes");
    write_file_atomically(folder_.path() / "nodes/join", "a token");
    ExperimentSpec spec;
    spec.name = "s";
    spec.options.pool = pool;
    write_file_atomically(folder_.path() / "agent.sh",
                          agent_script(spec, PoolFiles(spec, folder_.path()), "echo"));
  }
  // The words of the agent that starts as allocation a1 on the host, after those of its token.
  std::string agent(const std::string& host) const {
    const std::string command =
        "sh '" + (folder_.path() / "agent.sh").string() + "' a1 '" + host + "'";
    FILE* output = ::popen(command.c_str(), "r");
    REQUIRE(output != nullptr);
    std::array<char, 512> line{};
    const bool is_read = std::fgets(line.data(), line.size(), output) != nullptr;
    CHECK(::pclose(output) == 0);
    const std::string begin = "agent --join-file " + (folder_.path() / "nodes/join").string();
    const std::string words = is_read ? line.data() : "";
    return words.starts_with(begin) ? words.substr(begin.size()) : words;
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
  const std::string begin = " --drain 120s ";
  CHECK(script.agent("alpha") == begin + "--cpus 4 --gpus 2 --name a1\n");
  CHECK(script.agent("beta") == begin + "--cpus 1 --gpus 2 --name a1\n");
}

TEST_CASE("an agent offers all that its host has unless a share is given") {
  PoolOptions pool;
  pool.engine = "ssh";
  pool.hosts = {{.name = "alpha"}, {.name = "beta", .gpu = 2}};
  const AgentScript script(pool);
  const std::string begin = " --drain 120s ";
  CHECK(script.agent("alpha") == begin + "--name a1\n");
  CHECK(script.agent("beta") == begin + "--gpus 2 --name a1\n");
}

}  // namespace
}  // namespace tune
