#include "tune/results/ask_driver.h"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/node.h"
#include "core/platform/request_socket.h"
#include "tune/results/experiment_folder.h"

namespace tune {

namespace {

std::string told_by(const std::string& answer) {
  const Value told = parse_json(answer, "the driver's answer");
  if (told.contains("done")) return told.get<std::string>("done");
  throw Error(ErrorCode::kBadInput, told.get<std::string>("error"));
}

[[noreturn]] void refuse_asking(const std::filesystem::path& directory, const std::string& why) {
  throw Error(ErrorCode::kBadInput, fmt::format("{}: {}", directory.string(), why));
}

std::string how_to_begin(const std::filesystem::path& directory,
                         const std::optional<RunRecord>& record) {
  const std::string resume = how_to_resume(directory);
  if (record && record->state == RunState::kFinished) {
    return fmt::format(
        "no driver runs it, as it is finished: {} --num-samples N goes on with more trials",
        resume);
  }
  return fmt::format("no driver runs it; resume it first with: {}", resume);
}

}  // namespace

std::string ask_driver(const std::filesystem::path& directory, const Value& request) {
  read_spec(directory);  // or it is not an experiment's folder
  const std::optional<RunRecord> record = read_record(directory);
  if (!record || !is_live(directory)) refuse_asking(directory, how_to_begin(directory, record));
  if (record->hostname != hostname()) {
    refuse_asking(directory,
                  fmt::format("its driver runs on {}: give the command there", record->hostname));
  }
  if (record->requests.empty()) {
    refuse_asking(directory, "its driver is of an older tune, which takes no orders");
  }
  if (::access(record->requests.c_str(), W_OK) != 0 && errno == EACCES) {
    refuse_asking(directory, "another user runs it: only that user may change it");
  }
  return told_by(ask(record->requests, to_json(request)));
}

std::string user_name() {
  const char* name = std::getenv("USER");
  if (name != nullptr && *name != '\0') return name;
  const passwd* found = ::getpwuid(::getuid());
  return found != nullptr ? found->pw_name : fmt::format("user {}", ::getuid());
}

}  // namespace tune
