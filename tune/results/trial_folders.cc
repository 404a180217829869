#include "tune/results/trial_folders.h"

#include <algorithm>

#include "tune/results/trial_stories.h"

namespace tune {

TrialFolders list_trial_folders(const std::filesystem::path& experiment) {
  TrialFolders found;
  std::filesystem::directory_iterator entry(experiment, found.error);
  for (; !found.error && entry != std::filesystem::directory_iterator();
       entry.increment(found.error)) {
    const std::string name = entry->path().filename().string();
    const auto number = number_of_id(name);
    if (!number || name.size() < 11 || name[5] != '_') continue;
    if (found.prefix.empty()) found.prefix = name.substr(0, 6);
    if (name.starts_with(found.prefix)) found.numbers.push_back(*number);
  }
  std::sort(found.numbers.begin(), found.numbers.end());
  return found;
}

}  // namespace tune
