// The tune program's command line in a process of its own, in a folder of the test.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "trainables/temporary_folder.h"
#include "tune/cli/cli.h"

namespace tune {

struct Ended {
  int code = -1;
  std::string out;
  std::string err;
};

class Shell {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path() / name).parent_path());
    std::ofstream(path() / name, std::ios::binary) << text;
  }
  Ended tune(std::vector<const char*> arguments) const {
    arguments.insert(arguments.begin(), "tune");
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      if (chdir(path().c_str()) != 0 || freopen("out.txt", "w", stdout) == nullptr ||
          freopen("err.txt", "w", stderr) == nullptr) {
        _exit(99);
      }
      const int code = command_line(static_cast<int>(arguments.size()), arguments.data());
      std::fflush(nullptr);
      _exit(code);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, testing::read_text(path() / "out.txt"),
            testing::read_text(path() / "err.txt")};
  }

 private:
  testing::TemporaryFolder folder_;
};

}  // namespace tune
