// Reads the tree: the includes between folders, what pure files may not touch, where torch may be.
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
using testing::read_source;
using testing::room_of;
using testing::Source;
using testing::sources_below;
using testing::text_of;

struct Room {
  std::string name;
  std::set<std::string> may_use;  // in addition to its own files
};

// Each room uses rooms above it in this list only, and of these the named ones.
const std::vector<Room> kRooms = {
    {"core", {}},
    {"core/platform", {"core"}},
    {"core/agent", {"core", "core/platform"}},
    {"schedulers", {"core"}},
    {"trainables", {"core"}},
    {"trainables/command", {"core", "core/platform", "trainables"}},
    {"trainables/shared_memory", {"core", "core/platform"}},
    {"trainables/torch", {"core", "core/platform", "trainables", "trainables/shared_memory"}},
    {"tune/search", {"core", "schedulers"}},
    {"tune/testing", {"core", "schedulers", "tune/search"}},
    // Reading a sweep looks for programs and libraries, as this machine or its agents would.
    {"tune/spec", {"core", "core/platform", "core/agent", "schedulers", "tune/search"}},
    {"tune/control", {"core", "schedulers", "tune/search", "tune/spec"}},
    // Loggers are told the controller's records, and a status is that of a controller.
    {"tune/results",
     {"core", "core/platform", "core/agent", "schedulers", "tune/search", "tune/spec",
      "tune/control"}},
    {"tune/simulate",
     {"core", "core/platform", "schedulers", "tune/search", "tune/spec", "tune/control",
      "tune/results"}},
    {"tune/export", {"core", "core/platform", "tune/search", "tune/spec", "tune/results"}},
    {"tune/show", {"core", "core/platform", "schedulers", "tune/spec", "tune/results"}},
    {"tune/drive",
     {"core", "core/platform", "core/agent", "tune/search", "tune/spec", "tune/control",
      "tune/results", "tune/export"}},
    // The page's server is a program beside the others: it reads what they write.
    {"tune/view", {"core", "core/platform", "tune/results"}},
    {"tune/cli",
     {"core", "core/platform", "core/agent", "schedulers", "tune/search", "tune/spec",
      "tune/control", "tune/results", "tune/simulate", "tune/export", "tune/show", "tune/drive"}},
    {"tune",
     {"core", "core/platform", "schedulers", "tune/search", "tune/spec", "tune/results",
      "tune/show", "tune/drive"}},
};

// Files that pass over the arrows.
bool is_door(const std::string& file, const std::string& to) {
  if (file == "tune/torch.h") return to == "trainables/torch";
  if (file == "trainables/worker_main.cc") return to == "trainables/command";  // runs all kinds
  // Where tune meets trainables: the front doors of a user's program.
  static const std::set<std::string> front_doors = {"tune/run.h", "tune/run.cc", "tune/tune.h",
                                                    "tune/distributor.h", "tune/distributor.cc"};
  return to == "trainables" && front_doors.contains(file);
}

TEST_CASE("includes follow the arrows between folders") {
  std::map<std::string, std::set<std::string>> used;
  for (const char* top : {"core", "schedulers", "trainables", "tune"}) {
    for (const Source& source : sources_below(top)) {
      const std::string folder = source.file.substr(0, source.file.rfind('/') + 1);
      for (const std::string& header : source.includes) {
        const std::string to = room_of(header);
        // Without its folder an include has no room.
        const bool is_bare = to.empty() && fs::exists(kRoot / (folder + header));
        CHECK_MESSAGE(!is_bare, source.file << " includes " << header << ": say its folder");
        if (!to.empty() && !is_door(source.file, to)) used[room_of(source.file)].insert(to);
        const auto room = std::ranges::find(kRooms, room_of(source.file), &Room::name);
        REQUIRE(room != kRooms.end());
        const bool may = to.empty() || to == room->name || room->may_use.contains(to);
        CHECK_MESSAGE((may || is_door(source.file, to)), source.file << " includes " << header);
      }
    }
  }
  std::set<std::string> above;
  for (const Room& room : kRooms) {
    for (const std::string& other : room.may_use) {
      CHECK_MESSAGE(above.contains(other), room.name << " stands above " << other);
      CHECK_MESSAGE(used[room.name].contains(other), room.name << " does not use " << other);
    }
    above.insert(room.name);
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
    for (const char* inside :
         {"core/platform/", "core/agent/", "tune/drive/", "tune/control/", "tune/show/",
          "tune/cli/", "tune/simulate/", "tune/view/", "tune/export/"}) {
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

// Whether the comment that opens the header says so: "Pure.", or "a pure state machine".
bool says_pure(const std::string& header) {
  const std::string text = text_of(kRoot / header);
  static const std::regex word(R"(\b[Pp]ure\b)");
  return std::regex_search(
      text.begin(),
      text.begin() + static_cast<std::ptrdiff_t>(std::min(text.find("#pragma once"), text.size())),
      word);
}

// Files that decide: no clock, file, socket, thread, log or environment. Those of whole folders and
// families, and those whose header says it of itself.
bool is_pure(const std::string& file) {
  static const std::regex pure(
      R"(^(core/[^/]+|core/agent/(agent_(actions|machine)|attempt|group_pace|watched_time)[^/]*)$)"
      R"(|^core/agent/(worker_(rest|start)|zygote_supervisor)[^/]*$|^schedulers/[^/]+$)"
      R"(|^core/agent/(folder_pull|relay_(client|desk|files))[^/]*$)"
      R"(|^tune/control/[^/]*$|^tune/search/|^tune/simulate/(?!task_files)[^/]*$|^tune/export/(curves|hparams|mlflow_batch|optuna_space)|^tune/drive/(driver_machine|pool_machine|engine_words|kubernetes_words|ray_words|ssh_words)|^trainables/worker_machine|^trainables/command/(line_buffer|report_lines))");
  static const std::set<std::string> edges = {"core/error.cc", "core/spawn.h"};
  if (edges.contains(file)) return false;
  const std::string header = file.substr(0, file.rfind('.')) + ".h";
  return std::regex_search(file, pure) || (fs::exists(kRoot / header) && says_pure(header));
}

// A pattern for each line of the tree would take seconds.
bool has_word(std::string_view line, std::string_view word) {
  const auto is_letter = [&](std::size_t at) {
    return at < line.size() &&
           (std::isalnum(static_cast<unsigned char>(line[at])) || line[at] == '_');
  };
  for (std::size_t at = 0; (at = line.find(word, at)) != line.npos; ++at) {
    if (!is_letter(at - 1) && !is_letter(at + word.size())) return true;
  }
  return false;
}

TEST_CASE("pure files touch no clock, file, socket, thread, log or environment") {
  const std::set<std::string> forbidden_headers = {
      "fstream", "iostream",     "thread",     "mutex",       "condition_variable",
      "atomic",  "future",       "cstdio",     "stdio.h",     "unistd.h",
      "fcntl.h", "sys/socket.h", "sys/stat.h", "sys/types.h", "hiredis/hiredis.h",
      "zmq.hpp", "sys/wait.h",   "random"};
  const std::vector<std::string_view> forbidden_words = {
      "steady_clock",    "system_clock",  "high_resolution_clock",
      "getenv",          "setenv",        "std::time",
      "::time",          "clock_gettime", "gettimeofday",
      "std::filesystem", "fopen",         "printf",
      "std::cout",       "std::cerr",     "std::rand"};
  std::size_t files = 0;
  for (const char* top : {"core", "schedulers", "trainables", "tune"}) {
    for (const Source& source : sources_below(top)) {
      if (!is_pure(source.file)) continue;
      ++files;
      for (const std::string& header : source.includes) {
        CHECK_MESSAGE(!forbidden_headers.contains(header), source.file << " includes " << header);
        const bool is_own = header == source.file.substr(0, source.file.rfind('.')) + ".h";
        const bool is_edge = room_of(header) == "core/platform" && !is_own;
        CHECK_MESSAGE(!is_edge, source.file << " includes " << header);
      }
      for (const std::string& line : source.lines) {
        for (const std::string_view word : forbidden_words) {
          if (has_word(line, word)) FAIL_CHECK(source.file << ": " << line);
        }
      }
    }
  }
  CHECK(files > 300);  // the patterns still find them
}

TEST_CASE("no file is longer than 600 lines") {
  for (const char* top :
       {"core", "schedulers", "trainables", "tune", "examples", "tests", "bench"}) {
    for (const Source& source : sources_below(top)) {
      CHECK_MESSAGE(source.lines.size() <= 600, source.file << " has " << source.lines.size());
    }
  }
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
