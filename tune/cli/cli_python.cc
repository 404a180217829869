// The driver of a tune.run in a Python process: what the package `tune` of trainables/python
// starts.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/agent/plugin_probe.h"
#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "core/platform/side_output.h"
#include "core/wire.h"
#include "tune/cli/cli_commands.h"
#include "tune/drive/driver.h"
#include "tune/drive/program_call.h"
#include "tune/drive/resume.h"
#include "tune/results/experiment_folder.h"
#include "tune/show/make_reporter.h"
#include "tune/show/status_stream.h"
#include "tune/spec/option_reader.h"
#include "tune/spec/options_value.h"
#include "tune/spec/python_options.h"
#include "tune/spec/trainable_check.h"

namespace tune {

namespace {

constexpr std::size_t kMaxOrderBytes = 64u << 20;

// All that the caller says, a MessagePack map.
Value read_order(int descriptor) {
  const FileDescriptor order(descriptor);
  std::string bytes;
  char part[1 << 14];
  for (ssize_t count = 0; (count = ::read(order.get(), part, sizeof part)) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 || bytes.size() > kMaxOrderBytes) {
      throw Error(ErrorCode::kProtocol, "reading the order of a Python program");
    }
    bytes.append(part, static_cast<std::size_t>(count));
  }
  return unpack({bytes});
}

ProgramCall program_of(const Value& order) {
  const Value& told = order.at("program");
  ProgramCall program;
  program.executable = told.get<std::string>("executable");
  program.arguments = told.get<std::vector<std::string>>("arguments");
  program.working_directory = told.get<std::string>("working_directory");
  program.call = told.get<std::uint32_t>("call");
  program.earlier = told.get<std::vector<std::string>>("earlier");
  return program;
}

// The trainable of a name, which a process of its own imports; nothing: the caller has it.
std::optional<PythonCall> python_of(const Value& order) {
  const Value* told = order.find("python");
  return told == nullptr ? std::nullopt : std::optional(python_from_value(*told));
}

ZygoteReady loaded_of(const Value& order, const std::optional<PythonCall>& python) {
  if (python) return probe_program(zygote_command(*python), python->target);
  const Value& told = order.at("trainable");
  ZygoteReady loaded;
  loaded.trainables.push_back(
      {told.get<std::string>("name"), told.get<bool>("can_save"), told.get<bool>("is_function")});
  return loaded;
}

// All mistakes at once.
ExperimentSpec spec_of(const Value& order) {
  std::vector<Complaint> complaints;
  RunOptions options;
  OptionReader reader(order.at("options"), "", complaints);
  read_options(reader, options);
  reader.finish();
  auto python = python_of(order);
  if (python) find_python(*python, std::filesystem::current_path(), complaints);
  // A value that could not be read is missing: not every consequence is a mistake of its own.
  if (!complaints.empty()) throw_complaints("tune.run", complaints);
  const ZygoteReady loaded = loaded_of(order, python);
  const std::string name = python ? trainable_name(*python) : loaded.trainables.at(0).name;
  const bool is_function = !loaded.trainables.empty() && loaded.trainables[0].is_function;
  ExperimentSpec spec = make_spec(options, name, is_function, complaints);
  auto unfit = complaints_about(loaded, wanted_trainable(spec.options, name));
  take_keys_of_python(unfit);
  complaints.insert(complaints.end(), unfit.begin(), unfit.end());
  if (!complaints.empty()) throw_complaints("tune.run", complaints);
  spec.python = std::move(python);
  return spec;
}

RunRequest request_of(const Value& order, ExperimentSpec spec) {
  const std::filesystem::path existing = order.get_or("resume", "");
  RunRequest request =
      existing.empty() ? request_by_if_exists(std::move(spec)) : resume_request(existing, spec);
  request.retry_errored = order.get_or("retry_errored", false);
  return request;
}

ZygoteSource zygote_of(const Value& order, const ProgramCall& program) {
  ZygoteSource source;
  const Value& agent = order.at("agent");
  source.waiting_agent = WaitingAgent{agent.get<int>("pid"), agent.get<int>("socket")};
  if (program.executable.empty()) return source;  // a notebook: it cannot be executed again
  source.command = zygote_command(program);
  source.environment = zygote_environment(program);
  return source;
}

Value run(const Value& order) {
  RunRequest request = request_of(order, spec_of(order));
  if (!request.spec.python) {
    request.spec.program = program_of(order);
    request.zygote = zygote_of(order, *request.spec.program);
  }
  const int status = order.get_or("status", -1);
  if (status >= 0) {
    request.reporter =
        std::make_shared<StatusStream>(FileDescriptor(status), request.spec.options.reporter);
  } else {
    request.reporter = make_reporter(request.spec.options);
  }
  const RunOutcome outcome = run_experiment(std::move(request));
  return Value{{"directory", std::filesystem::absolute(outcome.directory).string()},
               {"errored", outcome.errored},
               {"signal", outcome.signal},
               {"resume", outcome.signal != 0 ? how_to_resume(outcome.directory) : ""}};
}

}  // namespace

int python_run_command(int order_descriptor) {
  const Value order = read_order(order_descriptor);
  const FileDescriptor outcome(order.get<int>("outcome"));
  Value told;
  try {
    told = run(order);
  } catch (const Error& error) {
    told = Value{{"error", error.what()}, {"code", exit_code(error.code())}};
  } catch (const std::exception& error) {
    told = Value{{"error", error.what()}, {"code", 3}};
  }
  write_or_give_up(outcome.get(), to_json(told) + "\n");
  return 0;
}

}  // namespace tune
