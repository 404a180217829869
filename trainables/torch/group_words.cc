#include "trainables/torch/group_words.h"

#include <cstdint>
#include <exception>
#include <thread>

namespace tune {
namespace {

using Milliseconds = std::chrono::milliseconds;

std::string alone_key(int rank) {
  return "alone/" + std::to_string(rank);
}

std::string here_key(int rank) {
  return "here/" + std::to_string(rank);
}

constexpr const char* kAllHere = "all here";

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

}  // namespace

void say_here(c10d::Store& store, int rank, int ranks, const std::string& device) {
  store.multiSet({here_key(rank), alone_key(rank)}, {bytes_of(device), {0}});
  if (store.add("how many are here", 1) == ranks) store.set(kAllHere, bytes_of("yes"));
}

// The store's own wait would print a warning each time that it is over. Ranks that share memory see
// each other there at once; a rank that has none comes to the store alone.
bool are_all_here(c10d::Store& store) {
  for (Milliseconds pause(1); pause < kSlice; pause *= 2) {
    if (store.check({kAllHere})) return true;
    std::this_thread::sleep_for(pause);
  }
  return store.check({kAllHere});
}

std::vector<std::string> devices_of(c10d::Store& store, int ranks) {
  std::vector<std::string> devices;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto said = store.get(here_key(rank));
    devices.emplace_back(said.begin(), said.end());
  }
  return devices;
}

std::string absent_ranks(c10d::Store& store, int ranks) {
  std::string absent;
  for (int rank = 0; rank < ranks; ++rank) {
    if (store.check({here_key(rank)})) continue;
    absent += (absent.empty() ? "" : ", ") + std::to_string(rank);
  }
  return absent;
}

void say_alone(c10d::Store& store, int rank, bool alone) {
  store.set(alone_key(rank), std::vector<std::uint8_t>{alone ? std::uint8_t{1} : std::uint8_t{0}});
}

// Every rank has said it once when the group stands.
bool is_any_alone(c10d::Store& store, int ranks) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < ranks; ++rank) keys.push_back(alone_key(rank));
  try {
    for (const auto& said : store.multiGet(keys)) {
      if (!said.empty() && said[0] == 1) return true;
    }
  } catch (const std::exception&) {
    // The store is gone with rank 0, which cannot be alone then.
  }
  return false;
}

std::string what_others_say(c10d::Store& store, int rank, int ranks, Milliseconds patience,
                            const std::string& waited_for) {
  const auto key = [](int of) { return "stuck/" + std::to_string(of); };
  store.set(key(rank), bytes_of(waited_for));
  const auto until = std::chrono::steady_clock::now() + patience;
  std::string text;
  for (int other = 0; other < ranks; ++other) {
    if (other == rank) continue;
    while (!store.check({key(other)}) && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(Milliseconds(5));
    }
    text += "; rank " + std::to_string(other) + " ";
    if (!store.check({key(other)})) {
      text += "waits for nothing (it computes, is stopped or has ended)";
      continue;
    }
    const auto bytes = store.get(key(other));
    text += "waits in " + std::string(bytes.begin(), bytes.end());
  }
  return text;
}

}  // namespace tune
