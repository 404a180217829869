#include "tune/drive/end_notice.h"

#include <chrono>
#include <optional>

#include <fmt/format.h>

#include "core/error.h"
#include "core/store.h"
#include "tune/export/on_end.h"
#include "tune/results/experiment_folder.h"

namespace tune {

LastResort last_resort(const std::filesystem::path& directory) {
  constexpr std::chrono::seconds kStuck{3};  // when nothing comes of it
  return {kStuck, fmt::format("ending at once, what was done is kept; resume it with: {}\n",
                              how_to_resume(directory))};
}

RunOutcome run_and_tell(const OnEnd& wanted, const std::filesystem::path& directory,
                        const std::function<void(const std::string&)>& notice,
                        const std::function<RunOutcome()>& run) {
  const bool is_wanted = wanted.terminal || !wanted.command.empty() || !wanted.webhook.empty();
  if (!is_wanted) return run();
  const auto tell = [&](const char* status) {
    do_on_end(wanted, ended_run(directory, status), notice);
  };
  std::optional<RunOutcome> outcome;
  try {
    outcome = run();
  } catch (const SupersededError&) {
    throw;
  } catch (const Error&) {
    std::error_code ignored;
    if (std::filesystem::exists(directory / "run.json", ignored)) tell("failed");
    throw;
  }
  tell(outcome->signal != 0 ? "interrupted" : "finished");
  return *outcome;
}

}  // namespace tune
