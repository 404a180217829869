// Reads the tree: the includes between folders, what pure files may not touch, where torch may be.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tune {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TUNE_SOURCE_DIR;

struct Source {
  std::string file;                // relative to the root
  std::vector<std::string> lines;  // without // comments
  std::vector<std::string> includes;
};

Source read_source(const fs::path& path) {
  Source source;
  source.file = fs::relative(path, kRoot);
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
const std::vector<Source>& sources_below(const std::string& folder) {
  static std::map<std::string, std::vector<Source>> read;
  const auto [place, is_new] = read.try_emplace(folder);
  std::vector<Source>& found = place->second;
  if (!is_new) return found;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cc" && extension != ".cpp") continue;
    found.push_back(read_source(entry.path()));
  }
  return found;
}

// The folder that a header of this tree belongs to ("core/platform"), or "".
std::string room_of(const std::string& path) {
  static const std::vector<std::string> rooms = {
      "core/platform", "core/agent", "core",         "schedulers",       "tune/testing",
      "tune/search",   "tune/spec",  "tune/control", "tune/results",     "tune/simulate",
      "tune/export",   "tune/drive", "tune/show",    "tune/cli",         "tune/view",  "tune",
      "trainables/torch", "trainables/shared_memory", "trainables/command", "trainables", "examples", "tests", "bench"};
  for (const std::string& room : rooms) {
    if (path.starts_with(room + "/")) return room;
  }
  return {};
}

bool is_torch_header(const std::string& header) {
  for (const char* prefix : {"torch/", "ATen/", "c10/", "caffe2/", "cuda", "nccl", "trainables/torch/"}) {
    if (header.starts_with(prefix)) return true;
  }
  return header == "tune/torch.h";
}

TEST_CASE("includes follow the arrows between folders") {
  std::map<std::string, std::set<std::string>> allowed = {
      {"core", {"core"}},
      {"core/platform", {"core", "core/platform"}},
      {"core/agent", {"core", "core/platform", "core/agent"}},
      {"schedulers", {"core", "schedulers"}},
      {"trainables", {"core", "trainables"}},
      {"trainables/command", {"core", "core/platform", "trainables", "trainables/command"}},
      {"trainables/shared_memory", {"core", "core/platform", "trainables/shared_memory"}},
      {"trainables/torch", {"core", "core/platform", "trainables", "trainables/shared_memory",
                            "trainables/torch"}},
  };
  // Inside tune/ arrows run down this list, never up.
  const std::vector<std::string> floors = {"tune",         "tune/cli",     "tune/show",
                                           "tune/drive",   "tune/export",   "tune/simulate",
                                           "tune/results",
                                           "tune/control", "tune/spec",     "tune/search"};
  for (std::size_t floor = 0; floor < floors.size(); ++floor) {
    auto& below = allowed[floors[floor]];
    below = {"core", "core/platform", "core/agent", "schedulers"};
    below.insert(floors.begin() + static_cast<std::ptrdiff_t>(floor), floors.end());
  }
  // The page's server is a program beside the others: it reads what they write, and none includes it.
  allowed["tune/view"] = {"core",      "core/platform", "schedulers", "tune/results",
                          "tune/spec", "tune/search",   "tune/view"};
  allowed["tune/testing"] = {"core", "schedulers", "tune/search", "tune/testing"};
  // Where tune meets trainables: the front doors of a user's program.
  const std::set<std::string> front_door = {"tune/run.h", "tune/run.cc", "tune/tune.h",
                                            "tune/distributor.h", "tune/distributor.cc"};
  for (const char* top : {"core", "schedulers", "trainables", "tune"}) {
    for (const Source& source : sources_below(top)) {
      const std::string room = room_of(source.file);
      for (const std::string& header : source.includes) {
        const std::string from = room_of(header);
        if (from.empty()) continue;
        // tune-worker runs plugins and programs.
        if (source.file == "trainables/worker_main.cc" && from == "trainables/command") continue;
        if (room == "tune" && from == "trainables" && front_door.contains(source.file)) continue;
        if (source.file == "tune/torch.h") continue;
        CHECK_MESSAGE(allowed.at(room).contains(from), source.file << " includes " << header);
      }
    }
  }
}

// Adds what the header includes of this tree, and what that includes.
void add_reached(const std::string& header, std::set<std::string>& reached) {
  if (room_of(header).empty() || !reached.insert(header).second) return;
  for (const std::string& next : read_source(kRoot / header).includes) add_reached(next, reached);
}

// One of the lists of config/public_headers.cmake.
std::set<std::string> public_headers(const std::string& list) {
  std::ifstream in(kRoot / "config/public_headers.cmake");
  std::set<std::string> headers;
  std::string line;
  while (std::getline(in, line) && line != "set(" + list) continue;
  while (std::getline(in, line) && line != ")") headers.insert(line.substr(2));
  return headers;
}

void check_same(const std::set<std::string>& listed, const std::set<std::string>& reached) {
  for (const std::string& header : reached) {
    CHECK_MESSAGE(listed.contains(header), header << " is reached by a public header: leave it out "
                                                  << "there, or list it in public_headers.cmake");
  }
  for (const std::string& header : listed) {
    CHECK_MESSAGE(reached.contains(header), header << " is listed as public and reached by none");
  }
}

TEST_CASE("the headers that are installed are those that public headers reach") {
  std::set<std::string> reached;
  for (const char* header : {"tune/tune.h", "tune/testing/scheduler_conformance.h",
                             "tune/testing/searcher_conformance.h"}) {
    add_reached(header, reached);
  }
  check_same(public_headers("tune_public_headers"), reached);
  std::set<std::string> with_torch = reached;
  add_reached("tune/torch.h", with_torch);
  for (const std::string& header : reached) with_torch.erase(header);
  check_same(public_headers("tune_public_torch_headers"), with_torch);
}

TEST_CASE("public headers reach nothing of the drivers, agents and files of a run") {
  for (const std::string& header : public_headers("tune_public_headers")) {
    for (const char* inside : {"core/platform/", "core/agent/", "tune/drive/", "tune/control/",
                               "tune/show/", "tune/cli/", "tune/simulate/", "tune/view/",
                               "tune/export/"}) {
      CHECK_MESSAGE(!header.starts_with(inside), header);
    }
  }
}

TEST_CASE("torch stays in trainables/torch, tune/torch.h and the examples") {
  for (const char* top : {"core", "schedulers", "trainables", "tune"}) {
    for (const Source& source : sources_below(top)) {
      if (source.file.starts_with("trainables/torch/") || source.file == "tune/torch.h") continue;
      for (const std::string& header : source.includes) {
        CHECK_MESSAGE(!is_torch_header(header), source.file << " includes " << header);
      }
    }
  }
}

TEST_CASE("the examples include the public headers only") {
  std::size_t own = 0;
  for (const Source& source : sources_below("examples")) {
    for (const std::string& header : source.includes) {
      if (room_of(header).empty()) continue;
      ++own;
      CHECK_MESSAGE((header == "tune/tune.h" || header == "tune/torch.h"),
                    source.file << " includes " << header);
    }
  }
  CHECK(own > 0);
}

TEST_CASE("headers include neither fmt nor nlohmann-json, and no file has fmt beside torch") {
  for (const char* top : {"core", "schedulers", "trainables", "tune", "examples"}) {
    for (const Source& source : sources_below(top)) {
      bool torch = false;
      bool fmt = false;
      for (const std::string& header : source.includes) {
        const bool library = header.starts_with("fmt/") || header.starts_with("nlohmann/");
        CHECK_MESSAGE(!(library && source.file.ends_with(".h")),
                      source.file << " includes " << header);
        torch = torch || is_torch_header(header);
        fmt = fmt || header.starts_with("fmt/");
      }
      CHECK_MESSAGE(!(torch && fmt), source.file << " includes torch and fmt");
    }
  }
}

TEST_CASE("Boost, zlib and OpenSSL stay in tune/view") {
  for (const char* top : {"core", "schedulers", "trainables", "tune"}) {
    for (const Source& source : sources_below(top)) {
      if (source.file.starts_with("tune/view/")) continue;
      for (const std::string& header : source.includes) {
        const bool library =
            header.starts_with("boost/") || header.starts_with("openssl/") || header == "zlib.h";
        CHECK_MESSAGE(!library, source.file << " includes " << header);
      }
    }
  }
}

TEST_CASE("Eigen and LBFGS++ stay in few files of tune/search, away from public headers") {
  for (const char* top : {"core", "schedulers", "trainables", "tune", "examples"}) {
    for (const Source& source : sources_below(top)) {
      if (source.file.starts_with("tune/search/gp/")) continue;
      if (source.file.starts_with("tune/search/pb2/bandit.")) continue;
      if (source.file.starts_with("tune/search/cma_es/") && source.file.ends_with(".cc")) continue;
      for (const std::string& header : source.includes) {
        const bool library = header.starts_with("Eigen/") || header.starts_with("LBFGS");
        CHECK_MESSAGE(!library, source.file << " includes " << header);
      }
    }
  }
  for (const std::string& header : public_headers("tune_public_headers")) {
    for (const char* inside : {"tune/search/gp/", "tune/search/tpe/", "tune/search/cma_es/",
                               "tune/search/pb2/bandit."}) {
      CHECK_MESSAGE(!header.starts_with(inside), header);
    }
  }
}

// Files that decide: no clock, file, socket, thread, log or environment.
bool is_pure(const std::string& file) {
  static const std::regex pure(
      R"(^(core/[^/]+|core/agent/(agent_(actions|machine)|attempt|group_pace|watched_time)[^/]*)$)"
      R"(|^core/agent/(worker_(rest|start)|zygote_supervisor)[^/]*$|^schedulers/[^/]+$)"
      R"(|^core/agent/(folder_pull|relay_(client|desk|files))[^/]*$)"
      R"(|^tune/control/[^/]*$|^tune/search/|^tune/simulate/(?!task_files)[^/]*$|^tune/export/(curves|hparams|mlflow_batch|optuna_space)|^tune/drive/(driver_machine|pool_machine|engine_words|kubernetes_words|ray_words|ssh_words)|^trainables/worker_machine|^trainables/command/(line_buffer|report_lines))");
  static const std::set<std::string> edges = {"core/error.cc", "core/spawn.h"};
  return std::regex_search(file, pure) && !edges.contains(file);
}

// A pattern for each line of the tree would take seconds.
bool has_word(std::string_view line, std::string_view word) {
  const auto is_letter = [&](std::size_t at) {
    return at < line.size() && (std::isalnum(static_cast<unsigned char>(line[at])) || line[at] == '_');
  };
  for (std::size_t at = 0; (at = line.find(word, at)) != line.npos; ++at) {
    if (!is_letter(at - 1) && !is_letter(at + word.size())) return true;
  }
  return false;
}

TEST_CASE("pure files touch no clock, file, socket, thread, log or environment") {
  const std::set<std::string> forbidden_headers = {
      "fstream",    "iostream",      "thread",     "mutex",         "condition_variable",
      "atomic",     "future",        "cstdio",     "stdio.h",       "unistd.h",
      "fcntl.h",    "sys/socket.h",  "sys/stat.h", "sys/types.h",   "time.h",
      "ctime",      "hiredis/hiredis.h", "zmq.hpp", "sys/wait.h",   "random"};
  const std::vector<std::string_view> forbidden_words = {
      "steady_clock", "system_clock", "high_resolution_clock", "getenv", "setenv",
      "std::filesystem", "fopen", "printf", "std::cout", "std::cerr", "std::rand"};
  std::size_t files = 0;
  for (const char* top : {"core", "schedulers", "trainables", "tune"}) {
    for (const Source& source : sources_below(top)) {
      if (!is_pure(source.file)) continue;
      ++files;
      for (const std::string& header : source.includes) {
        CHECK_MESSAGE(!forbidden_headers.contains(header), source.file << " includes " << header);
        CHECK_MESSAGE(room_of(header) != "core/platform", source.file << " includes " << header);
      }
      for (const std::string& line : source.lines) {
        for (const std::string_view word : forbidden_words) {
          if (has_word(line, word)) FAIL_CHECK(source.file << ": " << line);
        }
      }
    }
  }
  CHECK(files > 30);  // the pattern still finds them
}

TEST_CASE("no file is longer than 600 lines") {
  for (const char* top : {"core", "schedulers", "trainables", "tune", "examples", "tests", "bench"}) {
    for (const Source& source : sources_below(top)) {
      CHECK_MESSAGE(source.lines.size() <= 600, source.file << " has " << source.lines.size());
    }
  }
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

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
                readme << " does not show as one block:\n" << block);
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

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  while (const std::size_t count = fread(buffer, 1, sizeof buffer, pipe))
    text.append(buffer, count);
  CHECK(pclose(pipe) == 0);
  return text;
}

TEST_CASE("the top of the tree holds what was agreed, and nothing beside") {
  const std::set<std::string> agreed = {
      "CMakeLists.txt", "CMakePresets.json", "LICENSE",    "README.md", "bench",      "config",
      "core",           "examples",          "schedulers", "tests",     "trainables", "tune"};
  const std::string tracked = output_of("git -C '" + kRoot.string() + "' ls-files 2>/dev/null || true");
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
      if (!target.empty() && target.find_first_not_of("abcdefghijklmnopqrstuvwxyz_./READM") !=
                                 std::string::npos) {
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
      const bool there = fs::exists(kRoot / named) ||
                         fs::exists((kRoot / readme).parent_path() / named);
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

TEST_CASE("tune and tune-worker link no torch") {
  for (const char* program : {"tune", "tune-worker"}) {
    const std::string libraries =
        output_of(std::string("ldd ") + TUNE_BINARY_DIR + "/bin/" + program);
    CHECK(libraries.find("libc.so") != std::string::npos);
    CHECK(libraries.find("torch") == std::string::npos);
    CHECK(libraries.find("libc10") == std::string::npos);
  }
}

}  // namespace
}  // namespace tune
