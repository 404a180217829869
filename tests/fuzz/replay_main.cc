// Where there is no libFuzzer: gives a target every file of its corpus, whole, cut short, and
// changed at random. An input that breaks it is left beside the program, as
// "<program>-<target>-broken".
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/check.h"

namespace {

constexpr std::size_t kMaxCuts = 64;
constexpr int kChanged = 2000;  // copies of each file
constexpr unsigned kSecondsAnInput = 20;
constexpr rlim_t kMemory = 2ull << 30;  // of the whole program

tune::fuzz::Target target = nullptr;
// The input that is being read, for the handler below.
const std::string* current = nullptr;
std::string broken_file;

void keep_input(int signal) {
  const int file = ::open(broken_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file >= 0 && current != nullptr) {
    [[maybe_unused]] const auto written = ::write(file, current->data(), current->size());
  }
  ::dprintf(STDERR_FILENO, "fuzz: signal %d; the input is in %s\n", signal, broken_file.c_str());
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void give(const std::string& input) {
  current = &input;
  ::alarm(kSecondsAnInput);
  target(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  ::alarm(0);
  current = nullptr;
}

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t limit) {
  return limit == 0 ? 0 : random() % limit;
}

std::string changed(std::string text, const std::vector<std::string>& corpus, Random& random) {
  constexpr unsigned char kTelling[] = {0x00, 0x01, 0x7f, 0x80, 0xc0, 0xdd, 0xdf, 0xff};
  for (std::size_t changes = 1 + below(random, 4); changes > 0; --changes) {
    const std::size_t at = below(random, text.size() + 1);
    const std::size_t length = below(random, std::min<std::size_t>(text.size() - at, 64) + 1);
    switch (below(random, 5)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(kTelling[below(random, 8)]);
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, std::string(text, at, length));
        break;
      default: {
        const std::string& other = corpus[below(random, corpus.size())];
        text.replace(at, std::string::npos, other, below(random, other.size() + 1));
      }
    }
  }
  return text;
}

std::vector<std::string> read_files(int count, char** folders) {
  std::vector<std::filesystem::path> paths;
  for (int i = 0; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(folders[i])) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());  // so that a seed always changes the same
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

void bound_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map terabytes
  const rlimit limit{kMemory, kMemory};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace

// The first arguments are the target and the seed of the changes, the others are the corpus's
// folders.
int main(int count, char** arguments) {
  tune::fuzz::require(count > 3, "usage: TARGET SEED CORPUS...");
  const std::string name = arguments[1];
  const auto found = tune::fuzz::targets().find(name);
  tune::fuzz::require(found != tune::fuzz::targets().end(), "there is no such target");
  target = found->second;
  const auto seed = std::stoull(arguments[2]);
  const std::vector<std::string> corpus = read_files(count - 3, arguments + 3);
  tune::fuzz::require(!corpus.empty(), "there is nothing in the corpus");
  broken_file = std::string(arguments[0]) + "-" + name + "-broken";
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM}) ::signal(signal, keep_input);
  bound_memory();
  Random random(seed);
  for (const std::string& input : corpus) {
    give(input);
    const std::size_t stride = input.size() / kMaxCuts + 1;
    for (std::size_t size = 0; size < input.size(); size += stride) give(input.substr(0, size));
    for (int i = 0; i < kChanged; ++i) give(changed(input, corpus, random));
  }
  std::printf("%zu files, each cut short and changed %d times by seed %llu\n", corpus.size(),
              kChanged, seed);
  return 0;
}
