#include "core/agent/python_command.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

// Runs the zygote of the package in the folder that is the first argument. The folder leaves the
// path again: it may hold other packages, which stand after the user's own.
constexpr const char* kStart =
    "import sys; d = sys.argv.pop(1); new = d and d not in sys.path; new and sys.path.insert(0, "
    "d); "
    "from tune._zygote_main import main; new and sys.path.remove(d); main(sys.argv[1:])";

constexpr std::size_t kPackageAt = 3;  // of the folder, in the command

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

// The folder that holds the package; empty: nothing is known of it.
std::string package_folder() {
  if (const char* given = std::getenv("TUNE_PYTHON_PACKAGE")) return given;
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const char* beside : {"../share/tune/python", "../.."}) {
    const fs::path folder = (here / beside).lexically_normal();
    std::error_code ignored;
    if (fs::exists(folder / "tune/_zygote_main.py", ignored)) return folder.string();
  }
  return {};
}

}  // namespace

std::string find_interpreter(const std::string& given) {
  std::string name = given;
  std::string source = "interpreter";
  if (name.empty()) {
    const char* variable = std::getenv("TUNE_PYTHON");
    name = variable != nullptr ? variable : "python3";
    source = variable != nullptr ? "TUNE_PYTHON" : "PATH";
  }
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return name;
  } else if (const char* path = std::getenv("PATH")) {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (is_program(fs::path(folder) / name)) return fs::path(folder) / name;
    }
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("there is no program {} (from {}): name the Python to use by the key "
                          "interpreter or in TUNE_PYTHON",
                          name, source));
}

std::vector<std::string> python_command(const PythonProgram& program) {
  std::vector<std::string> command = {find_interpreter(program.interpreter),
                                      "-c",
                                      kStart,
                                      package_folder(),
                                      "--control-fd",
                                      "{control}",
                                      "--target",
                                      program.target};
  for (const std::string& module : program.preload) {
    command.insert(command.end(), {"--preload", module});
  }
  return command;
}

std::vector<std::string> python_command_here(std::vector<std::string> command) {
  if (command.size() <= kPackageAt) {
    throw Error(ErrorCode::kProtocol, "the driver's command for Python names no package");
  }
  if (!is_program(command.front())) command.front() = find_interpreter("");
  if (const std::string own = package_folder(); !own.empty()) command[kPackageAt] = own;
  return command;
}

}  // namespace tune
