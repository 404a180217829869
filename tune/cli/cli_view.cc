// `tune view`: becomes the page's server, a program of its own beside this one, so that no other
// command is linked with an HTTP server.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/cli/cli_commands.h"

namespace tune {

namespace {

std::string program() {
  if (const char* given = std::getenv("TUNE_VIEW")) return given;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tune-view";
}

}  // namespace

int view_command(const ViewArguments& arguments) {
  std::vector<std::string> words = {program()};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--port", arguments.port ? std::to_string(*arguments.port) : "");
  add("--port-file", arguments.port_file);
  add("--address", arguments.address);
  add("--certificate", arguments.certificate);
  add("--key", arguments.key);
  if (arguments.control) words.emplace_back("--control");
  words.insert(words.end(), {"--", arguments.directory});
  std::vector<char*> command;
  for (std::string& word : words) command.push_back(word.data());
  command.push_back(nullptr);
  execv(command.front(), command.data());
  throw Error(
      ErrorCode::kProcess,
      fmt::format(
          "starting {}: {}: install tune-view beside tune, or name it in TUNE_VIEW (it is built "
          "where Boost 1.81 and OpenSSL are: libboost1.81-dev, libssl-dev)",
          words.front(), std::strerror(errno)));
}

}  // namespace tune
