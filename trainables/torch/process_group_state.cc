#include "trainables/torch/process_group_state.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "trainables/torch/group_patience.h"
#include "trainables/torch/group_words.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatienceForOthers{1000};  // that fail at the same time as this rank
constexpr milliseconds kLongestSearch = std::chrono::hours(24 * 7);  // for rank 0
// An agent that knows which rank is alone too long, or is stopped there, speaks first.
constexpr milliseconds kPatienceForAgent{10'000};

std::string seconds_text(std::chrono::steady_clock::duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(duration).count());
  return text;
}

// Writing to a rank that is gone is then an error to tell, as in Python, and not this one's end as
// well: Gloo and the store write to their sockets without MSG_NOSIGNAL.
void ignore_broken_pipes() {
  struct sigaction now {};
  ::sigaction(SIGPIPE, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

c10::intrusive_ptr<c10d::Store> open_store(const Rendezvous& place, milliseconds timeout,
                                           FileDescriptor socket) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = place.rank == 0;
  options.waitWorkers = false;
  options.timeout = timeout;
  if (socket.is_open()) options.masterListenFd = socket.release();
  return c10::make_intrusive<c10d::TCPStore>(place.address, options);
}

}  // namespace

// ---- Forming ------------------------------------------------------------------------------------

void ProcessGroup::State::form_first() {
  ignore_broken_pipes();
  meet_in_memory();
  // Without a socket it cannot be heard that another asks.
  const bool serves_later = place.rank != 0 || place.listening_socket;
  const auto late = make_store();
  if (has_met && serves_later) {
    late->open_when_asked();  // by a rank that did not wait so long in the memory
  } else {
    reach(late);
  }
  form();
}

void ProcessGroup::State::form(const State* like, bool shares_nccl) {
  const auto began = Clock::now();
  try {
    meet(like);
    const bool wants_nccl = like != nullptr ? like->nccl != nullptr : speaks_nccl();
    const bool shares = memory != nullptr && can_share(*memory, wants_nccl);
    const GroupTimes times = start_waiting(shares && !wants_nccl);
    if (shares_nccl) {
      nccl = like->nccl;
    } else if (wants_nccl) {
      nccl = make_nccl(store, place, times);
    }
    if (shares) {
      shared = speak_through(std::move(memory), {times.timeout, times.longest});
      group = make_shared_memory_group(store, place, shared);
    } else {
      memory.reset();
      group = within(times.timeout, [store = store, place = place, times] {
        return make_gloo_group(store, place, times);
      });
    }
    add_gpu(*group, options.device, nccl.get());
    // Rank 0 serves the store: it must not end while another still looks up addresses.
    group->barrier({{}, options.timeout, at::Device(at::kCPU), false})->wait();
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kProcess, who() + ": forming the group failed after " +
                                         seconds_text(Clock::now() - began) + ": " + absent(like) +
                                         cause_of(error));
  }
}

// Before anything of the store is asked. A rank that is late, or has no memory, is met by means of
// the store.
void ProcessGroup::State::meet_in_memory() {
  memory = join_memory(place, options);
  place.shared_memory.reset();
  has_met = memory && memory->await_all_here(kSlice) && can_share(*memory, false);
}

// Ranks that share memory are together already when they form another group.
void ProcessGroup::State::meet(const State* like) {
  if (has_met) return;
  if (like != nullptr && like->shared) {
    memory = next_memory(*like->shared);
    return;
  }
  say_here(*store, place.rank, place.size, nccl_device(options));
  await_all();
}

// A rank may be alone before it comes: all wait for it here, and nothing that has a time of its own
// begins before.
void ProcessGroup::State::await_all() const {
  RanksPatience patience(options.timeout);
  while (!(memory && memory->await_all_here(kSlice)) &&
         !within(patience, [store = store] { return are_all_here(*store); })) {
    if (patience.is_over()) throw std::runtime_error("not all ranks are here");
  }
}

c10::intrusive_ptr<LateStore> ProcessGroup::State::make_store() {
  // Rank 0 may be alone before it comes.
  const bool is_known = is_another_alone().has_value();
  const auto time = is_known ? std::min(longest(), kLongestSearch) : options.timeout;
  const auto open = [place = place, time](FileDescriptor socket) {
    return open_store(place, time, std::move(socket));
  };
  auto late = c10::make_intrusive<LateStore>(
      open, FileDescriptor(std::exchange(place.listening_socket, std::nullopt).value_or(-1)));
  late->setTimeout(options.timeout);
  store = late;
  return late;
}

void ProcessGroup::State::reach(const c10::intrusive_ptr<LateStore>& late) const {
  RanksPatience patience(options.timeout + kPatienceForStore);
  try {
    within(patience, [late] { late->open(); });
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kProcess, who() + ": cannot reach rank 0 at " + place.address + ":" +
                                         std::to_string(place.port) + " within " +
                                         seconds_text(options.timeout) + ": " + cause_of(error));
  }
}

// All ranks that compute on GPUs come to the same answer.
bool ProcessGroup::State::speaks_nccl() const {
  if (!options.device.is_cuda() || options.gloo_for_gpu) return false;
  return can_speak_nccl(within(
      options.timeout, [store = store, size = place.size] { return devices_of(*store, size); }));
}

// Through memory, ranks say there that they are alone, and no watch is needed.
GroupTimes ProcessGroup::State::start_waiting(bool through_memory) {
  listener = std::make_unique<SolitudeListener>([this, through_memory](bool begins) {
    if (shared) shared->memory().say_alone(begins);
    if (through_memory) return;
    try {
      say_alone(*store, place.rank, begins);
    } catch (const std::exception&) {
      // The store is gone with rank 0: the next collective says so.
    }
  });
  if (through_memory) return {options.timeout, longest(), nullptr};
  const auto any_alone = [store = store, size = place.size] { return is_any_alone(*store, size); };
  return {options.timeout, longest(), std::make_shared<GroupWatch>(any_alone, options.timeout)};
}

ProcessGroup::State::Milliseconds ProcessGroup::State::longest() const {
  return std::max(options.timeout, options.alone_timeout) + kPatienceForAgent;
}

// ---- What went wrong ----------------------------------------------------------------------------

// The ranks that did not come, when the store can say it.
std::string ProcessGroup::State::absent(const State* like) const {
  if (shared || (like != nullptr && like->shared)) return {};  // the error names them
  try {
    const std::string ranks = within(
        Milliseconds(0), [store = store, size = place.size] { return absent_ranks(*store, size); });
    return ranks.empty() ? ranks : "rank " + ranks + " did not come: ";
  } catch (const std::exception&) {
    return {};  // rank 0, which serves the store, is gone or does not answer
  }
}

// Tells the others what this rank has been waiting for, and what they tell, when they give up at
// about the same time: ranks that wait for different things wait in vain.
std::string ProcessGroup::State::others(const std::string& waited_for) const {
  const Milliseconds patience = std::min(kPatienceForOthers, options.timeout);
  try {
    return within(patience, [store = store, place = place, patience, waited_for] {
      return what_others_say(*store, place.rank, place.size, patience, waited_for);
    });
  } catch (const NoAnswer& error) {
    return std::string("; ") + error.what() + " (it computes or is stopped)";
  } catch (const std::exception&) {
    return "; rank 0, which keeps the group together, is gone";
  }
}

std::string ProcessGroup::State::explain(const std::string& what, const std::exception& error,
                                         Clock::time_point began) {
  if (nccl) nccl->say_failed();
  const std::string cause = cause_of(error);
  const auto waited = Clock::now() - began;
  const std::string here = what + ", call " + std::to_string(calls) + " of the group";
  std::string text = who() + ": " + here + ", failed after " + seconds_text(waited);
  if (!is_of_different_calls(error) && waited < options.timeout * 9 / 10) {
    return text + " (did a rank end?): " + cause;
  }
  return text + others(here) +
         ": all ranks must call the same collectives in the same order: " + cause;
}

void ProcessGroup::State::expect_other(int rank, const char* operation) const {
  if (rank >= 0 && rank < place.size && rank != place.rank) return;
  throw Error(ErrorCode::kBadInput, who() + ": " + operation + " rank " + std::to_string(rank) +
                                        ", which is no other rank of the group");
}

}  // namespace tune
