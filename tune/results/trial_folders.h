// The folders of trials in an experiment's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace tune {

struct TrialFolders {
  std::string prefix;                  // of their names: "2f1e0_"; empty: there are none
  std::vector<std::uint32_t> numbers;  // sorted
  std::error_code error;               // the folder could not be read to its end
};
TrialFolders list_trial_folders(const std::filesystem::path& experiment);

}  // namespace tune
