// The start of a rank's program: its words, its environment, its configuration as a file.
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "core/command_words.h"
#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"
#include "core/spawn.h"
#include "trainables/command/command_session.h"
#include "trainables/failure.h"

namespace tune {
namespace {

// The driver writes params.json beside it later, and may be writing while a program reads.
std::filesystem::path write_config(const StartWorker& start, const Config& config) {
  const auto path = std::filesystem::path(start.trial_directory) /
                    rank_file_name("config.json", start.rank);
  ReplacedFile file(path);
  file.write(to_json(config, 2) + "\n");
  file.commit(Flush::kNo);
  return path;
}

std::map<std::string, std::string> variables(const StartWorker& start, const WordFacts& facts,
                                             const Config& config) {
  auto variables = parameter_variables(config);
  variables["TUNE_CONTRACT"] = std::to_string(kCommandContract);
  variables["TUNE_CONFIG"] = facts.config_file;
  variables["TUNE_TRIAL_ID"] = facts.trial_id;
  variables["TUNE_TRIAL_DIR"] = facts.trial_directory;
  variables["TUNE_SEED"] = std::to_string(facts.seed);
  variables["TUNE_ATTEMPT"] = std::to_string(start.launch.attempt.value);
  variables["TUNE_CPUS"] = std::to_string(start.threads);
  if (!facts.checkpoint.empty()) variables["TUNE_CHECKPOINT"] = facts.checkpoint;
  return variables;
}

// Rank 0's program listens on MASTER_PORT itself: nobody else may. And no memory outlives an
// execution of a program.
void let_go_of_rendezvous() {
  for (const char* variable : {kRendezvousVariable, kSharedMemoryVariable}) {
    const char* number = std::getenv(variable);
    if (number == nullptr) continue;
    ::close(std::atoi(number));
    ::unsetenv(variable);
  }
}

// A script whose interpreter is missing gives the same error as a missing script.
std::string hint(const std::string& program) {
  std::error_code ignored;
  if (program.find('/') == std::string::npos) {
    return ": it is in no folder of PATH; a program of the working directory is written ./" +
           program;
  }
  if (!std::filesystem::exists(program, ignored)) {
    return fmt::format(" (the working directory is {})",
                       std::filesystem::current_path(ignored).string());
  }
  return ": it is there, but cannot be executed: is its interpreter (the first line, #!) there, and "
         "does it have the right to execute (chmod +x)?";
}

}  // namespace

void CommandSession::start_program() {
  let_go_of_rendezvous();
  const Config config(unpack(start_.launch.config));
  WordFacts facts;
  facts.program = settings_.command.program;
  facts.trial_id = start_.trial_id;
  facts.trial_directory = start_.trial_directory;
  facts.seed = start_.launch.seed;
  facts.config_file = in_phase("setup", [&] { return write_config(start_, config); }).string();
  if (checkpoint_ && !is_from_scratch()) facts.checkpoint = checkpoint_->string();
  ::unsetenv("TUNE_CHECKPOINT");  // of a sweep within a trial

  ProgramStart program;
  try {
    program.words = filled_words(settings_.command.words, config, facts);
  } catch (const Error& error) {
    fail("command", error.what());
  }
  program.environment = variables(start_, facts, config);
  program.reads_output = settings_.command.reads_output();
  program.has_descriptor = settings_.command.reads_descriptor();
  // Into a pipe Python writes when some thousand bytes are there: a verdict would come too late.
  if (program.reads_output && std::getenv("PYTHONUNBUFFERED") == nullptr) {
    program.environment["PYTHONUNBUFFERED"] = "1";
  }
  try {
    program_.start(program);
  } catch (const ProgramError& error) {
    fail("command", error.what() + hint(program.words[0]));
  }
}

}  // namespace tune
