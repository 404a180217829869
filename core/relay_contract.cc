#include "core/relay_contract.h"

#include <set>

#include <fmt/format.h>

namespace tune {
namespace {

bool stays_within(std::string_view path) {
  if (path.empty() || path.size() > kMaxRelayPath || path.find('\0') != path.npos) return false;
  while (true) {
    const std::size_t end = path.find('/');
    const std::string_view part = path.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == path.npos) return true;
    path.remove_prefix(end + 1);
  }
}

}  // namespace

std::string why_not_relayed(const std::vector<RelayFile>& files) {
  if (files.size() > kMaxRelayFiles) {
    return fmt::format("it has {} files, and {} are the limit: put them into one archive",
                       files.size(), kMaxRelayFiles);
  }
  std::set<std::string_view> paths;
  std::size_t bytes = 0;
  for (const RelayFile& file : files) {
    if (!stays_within(file.path)) return "a path in it leaves its folder: " + file.path;
    if (!paths.insert(file.path).second) return "a path in it stands there twice: " + file.path;
    if (file.is_folder && file.size != 0) return "a folder in it has a size: " + file.path;
    bytes += file.path.size();
  }
  if (bytes <= kMaxManifestBytes) return {};
  return fmt::format("the names of its files have {} bytes, and {} are the limit", bytes,
                     kMaxManifestBytes);
}

bool is_plugin_copy(std::string_view folder) {
  if (!folder.starts_with(kPluginCopies)) return false;
  folder.remove_prefix(std::string_view(kPluginCopies).size());
  return folder.size() == 16 && folder.find_first_not_of("0123456789abcdef") == folder.npos;
}

}  // namespace tune
