// Reads the READMEs: what they show, name and link to is there.
#include "tree/sources.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::is_torch_header;
using testing::kRoot;
using testing::output_of;
using testing::room_of;
using testing::Source;
using testing::sources_below;
using testing::text_of;

// All README.md files, relative to the root.
std::vector<std::string> readmes() {
  std::vector<std::string> found = {"README.md"};
  for (const char* top :
       {"core", "schedulers", "trainables", "tune", "examples", "config", "tests", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / top)) {
      const std::string path = fs::relative(entry.path(), kRoot);
      if (path.ends_with("/README.md") && !path.starts_with("tests/data/")) found.push_back(path);
    }
  }
  return found;
}

// A source file from the line after its last include on, as a README shows it.
std::string shown_part(const std::string& file) {
  const std::string text = text_of(kRoot / file);
  const std::size_t includes = text.rfind("#include");
  REQUIRE(includes != std::string::npos);
  return text.substr(text.find_first_not_of('\n', text.find('\n', includes)));
}

void check_block(const std::string& readme, const std::string& kind, const std::string& block) {
  const std::string text = text_of(kRoot / readme);
  CHECK_MESSAGE(text.find("```" + kind + "\n" + block + "```\n") != std::string::npos,
                readme << " does not show as one block:\n"
                       << block);
}

TEST_CASE("the READMEs' programs and sweep are those that are built and run") {
  std::string program = text_of(kRoot / "examples/first_program.cc");
  program.erase(0, program.find("#include <tune/tune.h>"));
  check_block("README.md", "cpp", program);
  check_block("schedulers/README.md", "cpp", shown_part("examples/median_stopping.h"));
  check_block("tune/README.md", "cpp", shown_part("examples/hill_climbing.h"));

  std::istringstream lines(text_of(kRoot / "config/fashion_mnist.yaml"));
  std::string sweep;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) sweep += line + "\n";
  }
  check_block("README.md", "yaml", sweep);
}

TEST_CASE("the top README is a door: short, and every folder's README is behind it") {
  const std::string top = text_of(kRoot / "README.md");
  CHECK(std::count(top.begin(), top.end(), '\n') <= 150);
  for (const std::string& readme : readmes()) {
    if (readme == "README.md") continue;
    CHECK_MESSAGE(top.find("](" + readme + ")") != std::string::npos, readme);
  }
}

TEST_CASE("the top of the tree holds what was agreed, and nothing beside") {
  const std::set<std::string> agreed = {
      "CMakeLists.txt", "CMakePresets.json", "LICENSE",    "README.md", "bench",      "config",
      "core",           "examples",          "schedulers", "tests",     "trainables", "tune"};
  const std::string tracked =
      output_of("git -C '" + kRoot.string() + "' ls-files 2>/dev/null || true");
  if (tracked.empty()) MESSAGE("not a clone: nothing is tracked");
  std::istringstream files(tracked);
  for (std::string file; std::getline(files, file);) {
    const std::string top = file.substr(0, file.find('/'));
    CHECK_MESSAGE((top.starts_with(".") || agreed.contains(top)), file);
    if (file.ends_with(".md"))
      CHECK_MESSAGE((file == "README.md" || file.ends_with("/README.md")), file);
  }
}

// A table's row of core/README.md: a folder and what its files may use.
std::map<std::string, std::set<std::string>> uses_by_folder() {
  std::map<std::string, std::set<std::string>> uses;
  std::istringstream lines(text_of(kRoot / "core/README.md"));
  static const std::regex row(R"(\| `([a-z_/]+)/` \|[^|]*\| ([^|]+) \|)");
  static const std::regex remark(R"( \([^)]*\))");
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    std::istringstream items(std::regex_replace(match[2].str(), remark, ""));
    for (std::string item; std::getline(items, item, ',');) {
      uses[match[1]].insert(item.substr(item.find_first_not_of(' ')));
    }
  }
  return uses;
}

// The maker of a header from elsewhere: a library, POSIX, or "std".
std::string maker_of(const std::string& header) {
  static const std::vector<std::pair<std::string, std::string>> makers = {
      {"fmt/", "fmt"},
      {"nlohmann/", "nlohmann-json"},
      {"hiredis/", "hiredis"},
      {"zmq", "cppzmq"},
      {"yaml-cpp/", "yaml-cpp"},
      {"CLI/", "CLI11"},
      {"torch/csrc/cuda/", "CUDA"},
      {"torch/cuda.h", "LibTorch"},
      {"torch/", "LibTorch"},
      {"ATen/cuda/", "CUDA"},
      {"ATen/", "LibTorch"},
      {"c10/cuda/", "CUDA"},
      {"c10/", "LibTorch"},
      {"nccl", "NCCL"},
      {"cuda", "CUDA"},
      {"jpeglib.h", "libjpeg"},
      {"png.h", "libpng"},
      {"zlib.h", "zlib"},
      {"doctest/", "doctest"},
      {"Eigen/", "Eigen"},
      {"LBFGS", "LBFGS++"},
      {"re2/", "RE2"},
      {"boost/", "Boost"},
      {"malloc.h", "glibc"},
      {"cxxabi.h", "std"}};
  for (const auto& [prefix, maker] : makers) {
    if (header.starts_with(prefix)) return maker;
  }
  return header.ends_with(".h") ? "POSIX" : "std";
}

TEST_CASE("each folder uses what the table of core/README.md says, and no more") {
  const auto allowed = uses_by_folder();
  REQUIRE(allowed.size() >= 8);
  std::map<std::string, std::set<std::string>> used;
  for (const char* top : {"core", "schedulers", "trainables", "tune"}) {
    for (const Source& source : sources_below(top)) {
      std::string folder = source.file.substr(0, source.file.rfind('/'));
      while (!allowed.contains(folder)) folder.resize(folder.rfind('/'));
      for (const std::string& header : source.includes) {
        std::string from = room_of(header);
        if (from.starts_with("tune")) from = "tune";
        if (from.empty()) from = maker_of(header);
        if (from == folder || from == "std") continue;
        if (source.file == "tune/torch.h" && is_torch_header(header)) continue;
        used[folder].insert(from);
        CHECK_MESSAGE(allowed.at(folder).contains(from), source.file << " includes " << header);
      }
    }
  }
  for (const auto& [folder, uses] : used) {
    for (const std::string& use : allowed.at(folder)) {
      CHECK_MESSAGE((use == "std" || uses.contains(use)), folder << " no longer uses " << use);
    }
  }
}

// The anchor that a heading gets: lower case, a hyphen for a space, no punctuation.
std::set<std::string> anchors_of(const fs::path& readme) {
  std::set<std::string> anchors;
  std::istringstream lines(text_of(readme));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) continue;
    std::string anchor;
    for (const char letter : line.substr(line.find(' ') + 1)) {
      if (letter == ' ') anchor += '-';
      if (std::isalnum(static_cast<unsigned char>(letter)) || letter == '-' || letter == '_') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      }
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST_CASE("every link of a README leads to a file and a heading that are there") {
  static const std::regex link(R"(\]\(([^)#]*)(#([^)]*))?\))");
  std::size_t links = 0;
  for (const std::string& readme : readmes()) {
    const std::string text = text_of(kRoot / readme);
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string target = (*at)[1];
      const std::string heading = (*at)[3];
      if (target.starts_with("http")) continue;
      // C++ has brackets and parentheses, too.
      if (!target.empty() &&
          target.find_first_not_of("abcdefghijklmnopqrstuvwxyz_./READM") != std::string::npos) {
        continue;
      }
      if (target.empty() && heading.empty()) continue;
      ++links;
      const fs::path file =
          target.empty() ? kRoot / readme : (kRoot / readme).parent_path() / target;
      CHECK_MESSAGE(fs::exists(file), readme << " links to " << target);
      if (heading.empty()) continue;
      CHECK_MESSAGE(anchors_of(file).contains(heading), readme << ": " << target << "#" << heading);
    }
  }
  CHECK(links > 10);
}

TEST_CASE("every file that a README names is there") {
  // Paths of this tree, between backquotes or in a command.
  static const std::regex path(
      R"([ `(/](((core|schedulers|trainables|tune|examples|config|tests|bench)/)[a-z0-9_/]+\.(h|cc|cpp|sh|yaml|py|cmake|md))\b)");
  std::size_t paths = 0;
  for (const std::string& readme : readmes()) {
    const std::string text = text_of(kRoot / readme);
    for (std::sregex_iterator at(text.begin(), text.end(), path), end; at != end; ++at) {
      ++paths;
      const std::string named = (*at)[1];
      const bool there =
          fs::exists(kRoot / named) || fs::exists((kRoot / readme).parent_path() / named);
      CHECK_MESSAGE(there, readme << " names " << named);
    }
  }
  CHECK(paths > 30);
}

std::string help_of(const std::string& command) {
  return output_of(std::string(TUNE_BINARY_DIR) + "/bin/tune " + command + " --help");
}

TEST_CASE("tune/README.md names every command of the program with every option") {
  // The command's lines in the README, and those that its options go on in.
  std::map<std::string, std::string> described;
  std::istringstream lines(text_of(kRoot / "tune/README.md"));
  static const std::regex usage(R"(^tune ((?:[a-z]+ \| )*[a-z]+) .*)");  // stop | pause
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, usage)) continue;
    std::istringstream names(match[1]);
    for (std::string name; names >> name;) described[name] += line + "\n";
  }
  const std::string help = help_of("");
  static const std::regex command(R"(\n  ([a-z]+)  )");
  static const std::regex option(R"(\n  (?:-.,)?(--[a-z][a-z-]+))");
  std::size_t options = 0;
  for (std::sregex_iterator at(help.begin(), help.end(), command), end; at != end; ++at) {
    const std::string name = (*at)[1];
    REQUIRE_MESSAGE(described.contains(name), "tune " << name);
    const std::string own_help = help_of(name);
    for (std::sregex_iterator o(own_help.begin(), own_help.end(), option); o != end; ++o) {
      if ((*o)[1] == "--help" || (*o)[1] == "--follow") continue;  // "-f"
      ++options;
      CHECK_MESSAGE(described.at(name).find((*o)[1]) != std::string::npos,
                    "tune " << name << " " << (*o)[1]);
    }
  }
  CHECK(described.size() >= 8);
  CHECK(options > 20);
}

}  // namespace
}  // namespace tune
