// RelayFolder: the files of one side of a relay, in a folder on disk.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/agent/relay_files.h"

namespace tune {

class RelayFolder : public RelayFiles {
 public:
  explicit RelayFolder(std::filesystem::path root) : root_(std::move(root)) {}

  std::vector<RelayFile> list(const std::string& folder) override;
  std::string read(const std::string& file, std::uint64_t offset, std::size_t bytes) override;
  void begin(const RelayPlace& place, const std::vector<RelayFile>& files) override;
  void write(const std::string& file, std::uint64_t offset, std::string_view bytes) override;
  void commit(const RelayPlace& place, const std::vector<RelayFile>& files) override;
  void join(const RelayPlace& place, const std::vector<RelayPart>& parts) override;
  void move(const std::string& from, const std::string& to) override;
  void remove(const std::string& file_or_folder) noexcept override;
  std::vector<std::string> names(const std::string& folder) noexcept override;
  std::uint64_t size(const std::string& file) override;
  std::uint64_t append(const std::string& file, std::optional<std::uint64_t> after,
                       std::string_view bytes) override;

 private:
  std::filesystem::path root_;
};

}  // namespace tune
