// Reads a group of ranks from the environment.
#include "trainables/torch/process_group.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "core/error.h"
#include "core/spawn.h"

namespace tune {
namespace {

using Milliseconds = std::chrono::milliseconds;

std::string text_of(const char* name, const char* fallback = nullptr) {
  const char* value = std::getenv(name);
  if (value != nullptr && *value != '\0') return value;
  if (fallback != nullptr) return fallback;
  throw Error(ErrorCode::kBadInput,
              std::string("forming a group of ranks: ") + name + " is not in the environment");
}

int number_of(const char* name, int low, int high, const char* fallback = nullptr) {
  const std::string text = text_of(name, fallback);
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (*end == '\0' && value >= low && value <= high) return static_cast<int>(value);
  throw Error(ErrorCode::kBadInput, std::string("forming a group of ranks: ") + name + " is " +
                                        text + ", a whole number from " + std::to_string(low) +
                                        " to " + std::to_string(high) + " is wanted");
}

Milliseconds timeout_of(const char* name, const char* fallback) {
  const std::string text = text_of(name, fallback);
  char* end = nullptr;
  const double amount = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !(amount > 0) || amount > 1e9) {
    throw Error(ErrorCode::kBadInput, std::string("forming a group of ranks: ") + name + " is " +
                                          text + ", seconds above 0 are wanted");
  }
  return Milliseconds(std::max<std::int64_t>(1, static_cast<std::int64_t>(amount * 1000)));
}

}  // namespace

Rendezvous Rendezvous::from_environment() {
  Rendezvous place;
  place.size = number_of("WORLD_SIZE", 1, 1'000'000, "1");
  if (place.size == 1) return place;
  place.rank = number_of("RANK", 0, place.size - 1);
  place.address = text_of("MASTER_ADDR");
  place.port = number_of("MASTER_PORT", 1, 65535);
  if (place.rank == 0 && std::getenv(kRendezvousVariable) != nullptr) {
    place.listening_socket = number_of(kRendezvousVariable, 0, 1'000'000);
    ::unsetenv(kRendezvousVariable);
  }
  if (std::getenv(kSharedMemoryVariable) != nullptr) {
    place.shared_memory = number_of(kSharedMemoryVariable, 0, 1'000'000);
    ::unsetenv(kSharedMemoryVariable);
  }
  return place;
}

std::chrono::milliseconds group_timeout() {
  return timeout_of("TUNE_GROUP_TIMEOUT_S", "60");
}

std::chrono::milliseconds alone_timeout() {
  return timeout_of("TUNE_ALONE_TIMEOUT_S", "600");
}

bool wants_gloo() {
  const std::string way = text_of("TUNE_GROUP_SPEAKS", "any");
  if (way == "gloo" || way == "any") return way == "gloo";
  throw Error(ErrorCode::kBadInput,
              "forming a group of ranks: TUNE_GROUP_SPEAKS is " + way + ", gloo or any is wanted");
}

}  // namespace tune
