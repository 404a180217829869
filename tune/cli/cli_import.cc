// tune import.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"
#include "tune/cli/cli_commands.h"
#include "tune/spec/import/import_sweep.h"

namespace tune {

int import_command(const std::string& file) {
  std::string text;
  try {
    text = read_file(file);
  } catch (const Error& error) {
    throw Error(ErrorCode::kBadInput, error.what());
  }
  const auto beside = [&](const std::string& name) -> std::optional<std::string> {
    try {
      return read_file(std::filesystem::path(file).parent_path() / name);
    } catch (const Error&) {
      return std::nullopt;
    }
  };
  const ImportedSweep imported = import_sweep(text, file, beside);
  fmt::print("{}", sweep_text(imported));
  for (const std::string& note : imported.notes) fmt::print(stderr, "note: {}\n", note);
  return 0;
}

}  // namespace tune
