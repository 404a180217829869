// Messages between the processes. The first byte says which, the rest is the message. The decoded
// message takes memory in proportion to its bytes, whatever lengths it claims.
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>
#include <variant>

#include "core/agent_contract.h"
#include "core/trial.h"
#include "core/worker_contract.h"
#include "fuzz/check.h"
#include "fuzz/kinds.h"
#include "tune/results/result_text.h"

namespace {

std::size_t allocated = 0;  // in this input, at once
std::size_t most_allocated = 0;
constexpr std::size_t kRoom = 64u << 10;
constexpr std::size_t kBytesForOne = 256;

void count(void* block) {
  allocated += malloc_usable_size(block);
  most_allocated = std::max(most_allocated, allocated);
}

}  // namespace

// Not inline: GCC takes their insides for a mismatch of new and free.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* block = std::malloc(std::max<std::size_t>(size, 1));
  if (block == nullptr) throw std::bad_alloc();
  count(block);
  return block;
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* block = std::malloc(std::max<std::size_t>(size, 1));
  if (block != nullptr) count(block);
  return block;
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  allocated -= std::min(allocated, malloc_usable_size(block));
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
  operator delete(block);
}

namespace {

using namespace tune;

// The uses of a result by controller, worker, loggers and readers.
void use(const Packed& packed) {
  fuzz::refused_as(ErrorCode::kProtocol, [&] { find_number(packed, "loss/train"); });
  fuzz::refused_as(ErrorCode::kProtocol, [&] {
    ResultText text;
    text.add_members(packed.bytes, ResultField::kDone);
    text.add(ResultField::kPid, std::int64_t{1});
  });
  fuzz::refused_as(ErrorCode::kProtocol, [&] {
    const Value value = unpack(packed);
    fuzz::require(unpack(pack(value)) == value, "a value is packed and unpacked");
  });
}

template <class T>
void read(std::string_view bytes) {
  const T message = decoded<T>(bytes);
  const std::string written = encoded(message);
  fuzz::require(encoded(decoded<T>(written)) == written, "a message reads back as it was written");
  if constexpr (std::is_same_v<T, AgentEvent>) {
    if (const auto* report = std::get_if<Reported>(&message)) use(report->result);
  }
}

}  // namespace

TUNE_FUZZ_TARGET(messages)(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  allocated = most_allocated = 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  fuzz::refused_as(ErrorCode::kProtocol, [&] {
    switch (static_cast<fuzz::Kind>(data[0])) {
      case fuzz::Kind::kCommand:
        return read<Command>(bytes);
      case fuzz::Kind::kAgentEvent:
        return read<AgentEvent>(bytes);
      case fuzz::Kind::kWorkerCommand:
        return read<WorkerCommand>(bytes);
      case fuzz::Kind::kWorkerEvent:
        return read<WorkerEvent>(bytes);
      case fuzz::Kind::kSpawnRequest:
        return read<SpawnRequest>(bytes);
      case fuzz::Kind::kZygoteMessage:
        return read<ZygoteMessage>(bytes);
      case fuzz::Kind::kTrial:
        return read<Trial>(bytes);
      case fuzz::Kind::kResult:
        return use(Packed{std::string(bytes)});
    }
  });
  fuzz::require(most_allocated <= kRoom + kBytesForOne * size, "memory beyond what was sent");
  return 0;
}
