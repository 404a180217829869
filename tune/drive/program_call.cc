#include "tune/drive/program_call.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "core/platform/process.h"

namespace tune {

namespace {

constexpr const char* kVariable = "TUNE_PROGRAM_CALL";
constexpr const char* kZygoteRole = "zygote";
constexpr const char* kResumeRole = "resume";

std::vector<std::string> own_arguments() {
  const std::string text = read_file("/proc/self/cmdline");
  std::vector<std::string> arguments;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    arguments.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!arguments.empty()) arguments.erase(arguments.begin());
  return arguments;
}

std::optional<ExecutedAgain> parse_environment() {
  const char* text = std::getenv(kVariable);
  if (text == nullptr) return std::nullopt;
  const Value value = parse_json(text, kVariable);
  unsetenv(kVariable);  // not for programs that this one starts
  ExecutedAgain again;
  again.role = value.get<std::string>("role") == kResumeRole ? ExecutedAgain::Role::kResume
                                                             : ExecutedAgain::Role::kZygote;
  again.call = value.get<std::uint32_t>("call");
  again.control_socket = std::stoi(value.get_or("control", "-1"));
  again.directory = value.get_or("directory", "");
  again.retry_errored = value.get_or("retry_errored", false);
  again.quiet = value.get_or("quiet", false);
  again.wait_gpus = value.get_or("wait_gpus", false);
  if (value.contains("num_samples")) again.num_samples = value.get<std::int64_t>("num_samples");
  if (value.contains("time_budget_s")) again.time_budget_s = value.get<double>("time_budget_s");
  again.listen = value.get_or("listen", "");
  again.earlier = value.get<std::vector<std::string>>("earlier");
  return again;
}

}  // namespace

const std::optional<ExecutedAgain>& executed_again() {
  static const std::optional<ExecutedAgain> again = parse_environment();
  return again;
}

ProgramCall this_program(std::uint32_t call, std::vector<std::string> earlier) {
  ProgramCall program;
  program.executable = std::filesystem::read_symlink("/proc/self/exe");
  program.arguments = own_arguments();
  program.working_directory = std::filesystem::current_path();
  program.call = call;
  program.earlier = std::move(earlier);
  return program;
}

std::vector<std::string> zygote_command(const ProgramCall& program) {
  std::vector<std::string> command = {program.executable};
  command.insert(command.end(), program.arguments.begin(), program.arguments.end());
  return command;
}

std::map<std::string, std::string> zygote_environment(const ProgramCall& program) {
  const Config value{{"role", kZygoteRole},
                     {"call", program.call},
                     {"control", "{control}"},
                     {"earlier", program.earlier}};
  return {{kVariable, to_json(value)}};
}

void execute_to_resume(const ProgramCall& program, const std::filesystem::path& directory,
                       const ResumeFlags& flags) {
  if (program.executable.empty()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("resuming {}: a notebook or prompt began it, which cannot be executed "
                            "again: call tune.run there with name=\"{}\" and if_exists=\"resume\"",
                            directory.string(), directory.filename().string()));
  }
  Config value{{"role", kResumeRole},
               {"call", program.call},
               {"directory", std::filesystem::absolute(directory).string()},
               {"retry_errored", flags.retry_errored},
               {"quiet", flags.quiet},
               {"wait_gpus", flags.wait_gpus},
               {"listen", flags.listen},
               {"earlier", program.earlier}};
  if (flags.num_samples) value.set("num_samples", *flags.num_samples);
  if (flags.time_budget_s) value.set("time_budget_s", *flags.time_budget_s);
  setenv(kVariable, to_json(value).c_str(), 1);
  std::vector<std::string> arguments = zygote_command(program);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string failed =
      chdir(program.working_directory.c_str()) != 0 ? program.working_directory
                                                    : program.executable;
  if (failed == program.executable) execv(program.executable.c_str(), argv.data());
  throw Error(ErrorCode::kBadInput,
              fmt::format("resuming {}: executing the program that began it: {}: {}: put it back, "
                          "or begin a new experiment",
                          directory.string(), failed, std::strerror(errno)));
}

}  // namespace tune
