// The sources of this tree as a test reads them.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tune::testing {

inline const std::filesystem::path kRoot = TUNE_SOURCE_DIR;

struct Source {
  std::string file;                // relative to the root
  std::vector<std::string> lines;  // without // comments
  std::vector<std::string> includes;
};

inline Source read_source(const std::filesystem::path& path) {
  Source source;
  source.file = std::filesystem::relative(path, kRoot);
  std::ifstream in(path);
  static const std::regex include(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  for (std::string line; std::getline(in, line);) {
    if (const auto comment = line.find("//"); comment != std::string::npos) line.resize(comment);
    std::smatch match;
    if (line.find('#') != line.npos && std::regex_search(line, match, include)) {
      source.includes.push_back(match[1]);
    }
    source.lines.push_back(std::move(line));
  }
  return source;
}

// Of each folder read once.
inline const std::vector<Source>& sources_below(const std::string& folder) {
  static std::map<std::string, std::vector<Source>> read;
  const auto [place, is_new] = read.try_emplace(folder);
  std::vector<Source>& found = place->second;
  if (!is_new) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cc" && extension != ".cpp") continue;
    found.push_back(read_source(entry.path()));
  }
  return found;
}

// The folder that a header of this tree belongs to ("core/platform"), or "".
inline std::string room_of(const std::string& path) {
  static constexpr std::array rooms = {"core/platform/",
                                       "core/agent/",
                                       "core/",
                                       "schedulers/",
                                       "tune/testing/",
                                       "tune/search/",
                                       "tune/spec/",
                                       "tune/control/",
                                       "tune/results/",
                                       "tune/simulate/",
                                       "tune/export/",
                                       "tune/drive/",
                                       "tune/show/",
                                       "tune/cli/",
                                       "tune/view/",
                                       "tune/",
                                       "trainables/torch/",
                                       "trainables/shared_memory/",
                                       "trainables/command/",
                                       "trainables/",
                                       "examples/",
                                       "tests/",
                                       "bench/"};
  for (const std::string_view room : rooms) {
    if (path.starts_with(room)) return std::string(room.substr(0, room.size() - 1));
  }
  return {};
}

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline bool is_torch_header(const std::string& header) {
  for (const char* prefix :
       {"torch/", "ATen/", "c10/", "caffe2/", "cuda", "nccl", "trainables/torch/"}) {
    if (header.starts_with(prefix)) return true;
  }
  return header == "tune/torch.h";
}

inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  while (const std::size_t count = fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, count);
  CHECK(pclose(pipe) == 0);
  return text;
}

}  // namespace tune::testing
