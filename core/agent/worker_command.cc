#include "core/agent/worker_command.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

std::string worker_program() {
  std::string program;
  if (const char* given = std::getenv("TUNE_WORKER")) {
    program = given;
  } else {
    program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tune-worker";
  }
  if (access(program.c_str(), X_OK) != 0) {
    throw Error(ErrorCode::kProcess,
                fmt::format("starting workers: there is no program {}: install tune-worker beside "
                            "tune, or name it in TUNE_WORKER",
                            program));
  }
  return program;
}

std::vector<std::string> worker_command(const std::string& plugin) {
  return {worker_program(), "--plugin", plugin, "--control-fd", "{control}"};
}

std::vector<std::string> worker_command(const CommandSettings& settings) {
  return {worker_program(), "--command", to_text(settings), "--control-fd", "{control}"};
}

}  // namespace tune
