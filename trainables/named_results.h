// Files that a rank hands out while it runs, by name.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace tune {

class NamedResults {
 public:
  using Told = std::function<void(const std::string& name)>;
  // `told` is called after each submit. The first submit makes the folder; empty: no folder.
  explicit NamedResults(std::filesystem::path folder, Told told = {})
      : folder_(std::move(folder)), told_(std::move(told)) {}

  // Writes the bytes into the folder under this name, "worker/0/data.json". Readers see all of them
  // or none; a name given again replaces what it held. Throws Error: kBadInput for a name that
  // could lead out of the folder ("..", a leading '/') or is empty, too long or ends in '/'; kIo.
  // Any thread.
  void submit(const std::string& name, std::string_view bytes) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  Told told_;
};

}  // namespace tune
