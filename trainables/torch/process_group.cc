#include "trainables/torch/process_group.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <future>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "trainables/solitude.h"
#include "trainables/torch/group_backends.h"
#include "trainables/torch/late_store.h"
#include "trainables/torch/shared_memory_group.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kPatienceForOthers{1000};  // that fail at the same time as this rank
constexpr Milliseconds kPatienceForStore{500};    // beyond the time that it is to keep itself
constexpr Milliseconds kSlice{100};               // of a wait for what may not come
constexpr Milliseconds kLongestSearch = std::chrono::hours(24 * 7);  // for rank 0
// An agent that knows which rank is alone too long, or is stopped there, speaks first.
constexpr Milliseconds kPatienceForAgent{10'000};

std::string named(const std::string& operation, const std::string& what, const at::Tensor& tensor) {
  return operation + " of " + (what.empty() ? std::string() : what + ", ") + describe(tensor);
}

std::string seconds_text(SteadyClock::duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(duration).count());
  return text;
}

struct NoAnswer : std::runtime_error {
  NoAnswer() : std::runtime_error("rank 0, which keeps the group together, does not answer") {}
};

// The time to wait for ranks that cannot be heard yet: the time begins anew as long as another rank
// is alone, where somebody knows it.
class Patience {
 public:
  explicit Patience(Milliseconds limit)
      : limit_(limit), period_(std::clamp(limit / 10, Milliseconds(10), Milliseconds(1000))) {}

  // When to look again, at the latest.
  SteadyClock::time_point next_look() const { return std::min(asked_ + period_, since_ + limit_); }
  bool is_over() {
    const auto now = SteadyClock::now();
    if (now >= next_look()) {
      asked_ = now;
      if (is_another_alone().value_or(false)) since_ = now;
    }
    return now >= since_ + limit_;
  }

 private:
  Milliseconds limit_;
  Milliseconds period_;
  SteadyClock::time_point since_ = SteadyClock::now();
  SteadyClock::time_point asked_ = since_;
};

template <class Work>
auto begun_in_a_thread(Work work) {
  std::packaged_task<std::invoke_result_t<Work&>()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  return result;
}

// A question to rank 0's store waits for ever when rank 0 is stopped or never begins: it is then
// left to itself, in its thread. `work` owns all that it uses.
template <class Work>
auto within(Patience& patience, Work work) {
  auto result = begun_in_a_thread(std::move(work));
  while (result.wait_until(patience.next_look()) != std::future_status::ready) {
    if (patience.is_over()) throw NoAnswer();
  }
  return result.get();
}

template <class Work>
auto within(Milliseconds limit, Work work) {
  auto result = begun_in_a_thread(std::move(work));
  if (result.wait_for(limit + kPatienceForStore) != std::future_status::ready) throw NoAnswer();
  return result.get();
}

// Writing to a rank that is gone is then an error to tell, as in Python, and not this one's end as
// well: Gloo and the store write to their sockets without MSG_NOSIGNAL.
void ignore_broken_pipes() {
  struct sigaction now {};
  ::sigaction(SIGPIPE, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

c10::intrusive_ptr<c10d::Store> open_store(const Rendezvous& place, Milliseconds timeout,
                                           FileDescriptor socket) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = place.rank == 0;
  options.waitWorkers = false;
  options.timeout = timeout;
  if (socket.is_open()) options.masterListenFd = socket.release();
  return c10::make_intrusive<c10d::TCPStore>(place.address, options);
}

// ---- Ranks that are alone -----------------------------------------------------------------------

std::string alone_key(int rank) {
  return "alone/" + std::to_string(rank);
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

// A rank's word when it begins to form the group; the others see it when it gets stuck later.
std::string here_key(int rank) {
  return "here/" + std::to_string(rank);
}

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

// The GPU of each rank, in their order; waits for them.
std::vector<std::string> devices_of(c10d::Store& store, int ranks) {
  std::vector<std::string> devices;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto said = store.get(here_key(rank));
    devices.emplace_back(said.begin(), said.end());
  }
  return devices;
}

constexpr const char* kAllHere = "all here";

// Whether all ranks have come; waits for them a little. The store's own wait would print a warning
// each time that it is over. Ranks that share memory see each other there at once; a rank that has
// none comes to the store alone.
bool are_all_here(c10d::Store& store) {
  for (Milliseconds pause(1); pause < kSlice; pause *= 2) {
    if (store.check({kAllHere})) return true;
    std::this_thread::sleep_for(pause);
  }
  return store.check({kAllHere});
}

std::string what_others_say(c10d::Store& store, const Rendezvous& place, Milliseconds patience,
                            const std::string& waited_for) {
  const auto key = [](int rank) { return "stuck/" + std::to_string(rank); };
  store.set(key(place.rank), bytes_of(waited_for));
  const auto until = SteadyClock::now() + patience;
  std::string text;
  for (int rank = 0; rank < place.size; ++rank) {
    if (rank == place.rank) continue;
    while (!store.check({key(rank)}) && SteadyClock::now() < until) {
      std::this_thread::sleep_for(Milliseconds(5));
    }
    text += "; rank " + std::to_string(rank) + " ";
    if (!store.check({key(rank)})) {
      text += "waits for nothing (it computes, is stopped or has ended)";
      continue;
    }
    const auto bytes = store.get(key(rank));
    text += "waits in " + std::string(bytes.begin(), bytes.end());
  }
  return text;
}

}  // namespace

struct ProcessGroup::State {
  Rendezvous place;
  GroupOptions options;
  c10::intrusive_ptr<c10d::Store> store;  // this group's part of it
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::unique_ptr<SolitudeListener> listener;
  std::uint64_t calls = 0;
  int duplicates = 0;
  std::shared_ptr<Nccl> nccl;  // null: none, or GPUs speak Gloo
  std::unique_ptr<shared_memory::RankMemory> memory;  // while the group forms
  bool has_met = false;                               // all ranks are in that memory and speak so
  c10::intrusive_ptr<SharedMemoryBackend> shared;     // null: CPUs speak Gloo

  bool is_alone() const { return place.size == 1; }
  std::string who() const {
    return "rank " + std::to_string(place.rank) + " of " + std::to_string(place.size);
  }

  // `like`: a group of the same ranks, which has found out already what they can speak.
  void form(const State* like = nullptr, bool shares_nccl = false) {
    const auto began = SteadyClock::now();
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
                                           seconds_text(SteadyClock::now() - began) + ": " +
                                           absent(like) + cause_of(error));
    }
  }

  // Before anything of the store is asked. A rank that is late, or has no memory, is met by means of
  // the store.
  void meet_in_memory() {
    memory = join_memory(place, options);
    place.shared_memory.reset();
    has_met = memory && memory->await_all_here(kSlice) && can_share(*memory, false);
  }

  // Ranks that share memory are together already when they form another group.
  void meet(const State* like) {
    if (has_met) return;
    if (like != nullptr && like->shared) {
      memory = next_memory(*like->shared);
      return;
    }
    store->multiSet({here_key(place.rank), alone_key(place.rank)},
                    {bytes_of(nccl_device(options)), {0}});
    await_all();
  }

  c10::intrusive_ptr<LateStore> make_store() {
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

  void reach(const c10::intrusive_ptr<LateStore>& late) const {
    Patience patience(options.timeout + kPatienceForStore);
    try {
      within(patience, [late] { late->open(); });
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kProcess, who() + ": cannot reach rank 0 at " + place.address + ":" +
                                           std::to_string(place.port) + " within " +
                                           seconds_text(options.timeout) + ": " + cause_of(error));
    }
  }

  // All ranks that compute on GPUs come to the same answer.
  bool speaks_nccl() const {
    if (!options.device.is_cuda() || options.gloo_for_gpu) return false;
    return can_speak_nccl(within(
        options.timeout, [store = store, size = place.size] { return devices_of(*store, size); }));
  }

  // A rank may be alone before it comes: all wait for it here, and nothing that has a time of its
  // own begins before.
  void await_all() const {
    if (store->add("how many are here", 1) == place.size) store->set(kAllHere, bytes_of("yes"));
    Patience patience(options.timeout);
    while (!(memory && memory->await_all_here(kSlice)) &&
           !within(patience, [store = store] { return are_all_here(*store); })) {
      if (patience.is_over()) throw std::runtime_error("not all ranks are here");
    }
  }

  Milliseconds longest() const {
    return std::max(options.timeout, options.alone_timeout) + kPatienceForAgent;
  }

  // Through memory, ranks say there that they are alone, and no watch is needed.
  GroupTimes start_waiting(bool through_memory) {
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
    const auto any_alone = [store = store, size = place.size] {
      return is_any_alone(*store, size);
    };
    return {options.timeout, longest(), std::make_shared<GroupWatch>(any_alone, options.timeout)};
  }

  // The ranks that did not come, when the store can say it.
  std::string absent(const State* like) const {
    if (shared || (like != nullptr && like->shared)) return {};  // the error names them
    try {
      return within(Milliseconds(0), [store = store, size = place.size] {
        std::string ranks;
        for (int rank = 0; rank < size; ++rank) {
          if (store->check({here_key(rank)})) continue;
          ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
        }
        return ranks.empty() ? ranks : "rank " + ranks + " did not come: ";
      });
    } catch (const std::exception&) {
      return {};  // rank 0, which serves the store, is gone or does not answer
    }
  }

  // Tells the others what this rank has been waiting for, and what they tell, when they give up at
  // about the same time: ranks that wait for different things wait in vain.
  std::string others(const std::string& waited_for) const {
    const Milliseconds patience = std::min(kPatienceForOthers, options.timeout);
    try {
      return within(patience, [store = store, place = place, patience, waited_for] {
        return what_others_say(*store, place, patience, waited_for);
      });
    } catch (const NoAnswer& error) {
      return std::string("; ") + error.what() + " (it computes or is stopped)";
    } catch (const std::exception&) {
      return "; rank 0, which keeps the group together, is gone";
    }
  }

  std::string explain(const std::string& what, const std::exception& error,
                      SteadyClock::time_point began) {
    if (nccl) nccl->say_failed();
    const std::string cause = cause_of(error);
    const auto waited = SteadyClock::now() - began;
    const std::string here = what + ", call " + std::to_string(calls) + " of the group";
    std::string text = who() + ": " + here + ", failed after " + seconds_text(waited);
    if (!is_of_different_calls(error) && waited < options.timeout * 9 / 10) {
      return text + " (did a rank end?): " + cause;
    }
    return text + others(here) +
           ": all ranks must call the same collectives in the same order: " + cause;
  }

  void expect_other(int rank, const char* operation) const {
    if (rank >= 0 && rank < place.size && rank != place.rank) return;
    throw Error(ErrorCode::kBadInput, who() + ": " + operation + " rank " + std::to_string(rank) +
                                          ", which is no other rank of the group");
  }

  // The watch ends it: with a limit NCCL would make the caller wait for the GPU.
  template <class Start>
  void run(const std::string& what, Start&& start) {
    ++calls;
    const auto began = SteadyClock::now();
    try {
      start()->wait();
    } catch (const std::exception& error) {
      throw Error(ErrorCode::kProcess, explain(what, error, began));
    }
  }
};

ProcessGroup::ProcessGroup() : state_(std::make_shared<State>()) {}

ProcessGroup::ProcessGroup(Rendezvous rendezvous, const GroupOptions& options) : ProcessGroup() {
  state_->options = options;
  state_->place = std::move(rendezvous);
  if (state_->is_alone()) return;
  ignore_broken_pipes();
  state_->meet_in_memory();
  // Without a socket it cannot be heard that another asks.
  const bool serves_later = state_->place.rank != 0 || state_->place.listening_socket;
  const auto store = state_->make_store();
  if (state_->has_met && serves_later) {
    store->open_when_asked();  // by a rank that did not wait so long in the memory
  } else {
    state_->reach(store);
  }
  state_->form();
}

int ProcessGroup::rank() const {
  return state_->place.rank;
}
int ProcessGroup::size() const {
  return state_->place.size;
}
c10::Device ProcessGroup::device() const {
  return state_->options.device;
}
std::chrono::milliseconds ProcessGroup::timeout() const {
  return state_->options.timeout;
}
const c10::intrusive_ptr<c10d::ProcessGroup>& ProcessGroup::c10d() const {
  return state_->group;
}
std::string ProcessGroup::explain(const std::string& what, const std::exception& error,
                                  SteadyClock::time_point began) const {
  return state_->explain(what, error, began);
}

void ProcessGroup::all_reduce(at::Tensor tensor, Reduce reduce, const std::string& what) {
  if (reduce == Reduce::kMean && !tensor.is_floating_point()) {
    throw Error(ErrorCode::kBadInput,
                "the mean over ranks of whole numbers is not a whole number: " +
                    named("all_reduce", what, tensor));
  }
  if (state_->is_alone()) return;
  const at::NoGradGuard no_gradients;
  c10d::AllreduceOptions options;
  options.reduceOp = reduce == Reduce::kMin   ? c10d::ReduceOp::MIN
                     : reduce == Reduce::kMax ? c10d::ReduceOp::MAX
                                              : c10d::ReduceOp::SUM;
  options.timeout = state_->longest();
  options.asyncOp = false;
  // Backends want it dense.
  std::vector<at::Tensor> tensors{tensor.contiguous()};
  state_->run(named("all_reduce", what, tensor),
              [&] { return state_->group->allreduce(tensors, options); });
  if (reduce == Reduce::kMean) tensors[0].div_(size());
  if (!tensors[0].is_same(tensor)) tensor.copy_(tensors[0]);
}

void ProcessGroup::broadcast(at::Tensor tensor, int from, const std::string& what) {
  if (state_->is_alone()) return;
  const at::NoGradGuard no_gradients;
  c10d::BroadcastOptions options;
  options.rootRank = from;
  options.timeout = state_->longest();
  options.asyncOp = false;
  std::vector<at::Tensor> tensors{tensor.contiguous()};
  state_->run(named("broadcast", what, tensor),
              [&] { return state_->group->broadcast(tensors, options); });
  if (!tensors[0].is_same(tensor)) tensor.copy_(tensors[0]);
}

std::vector<at::Tensor> ProcessGroup::all_gather(const at::Tensor& tensor,
                                                 const std::string& what) {
  std::vector<at::Tensor> inputs{tensor.detach().contiguous()};
  if (state_->is_alone()) return {inputs[0].clone()};
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (int rank = 0; rank < size(); ++rank) outputs[0].push_back(at::empty_like(inputs[0]));
  c10d::AllgatherOptions options;
  options.timeout = state_->longest();
  options.asyncOp = false;
  state_->run(named("all_gather", what, tensor),
              [&] { return state_->group->allgather(outputs, inputs, options); });
  return std::move(outputs[0]);
}

std::vector<std::string> ProcessGroup::all_gather_texts(const std::string& text,
                                                        const std::string& what) {
  if (state_->is_alone()) return {text};
  const auto on = at::TensorOptions().device(c10::kCPU);
  const auto size_of = [](const at::Tensor& length) {
    return *length.const_data_ptr<std::int64_t>();
  };
  const auto length = at::full({1}, static_cast<std::int64_t>(text.size()), on.dtype(at::kLong));
  const std::vector<at::Tensor> lengths = all_gather(length, what + " (length)");
  std::int64_t longest = 1;
  for (const at::Tensor& one : lengths) longest = std::max(longest, size_of(one));
  at::Tensor bytes = at::zeros({longest}, on.dtype(at::kByte));
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  const std::vector<at::Tensor> gathered = all_gather(bytes, what);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    texts.emplace_back(static_cast<const char*>(gathered[i].const_data_ptr()),
                       static_cast<std::size_t>(size_of(lengths[i])));
  }
  return texts;
}

void ProcessGroup::barrier(const std::string& what) {
  if (state_->is_alone()) return;
  c10d::BarrierOptions options;
  options.timeout = state_->longest();
  options.asyncOp = false;
  options.device = device();
  if (device().is_cuda()) options.device_ids = {device().index()};
  state_->run(what.empty() ? "barrier" : "barrier (" + what + ")",
              [&] { return state_->group->barrier(options); });
}

void ProcessGroup::send(const at::Tensor& tensor, int to, int tag) {
  state_->expect_other(to, "send to");
  std::vector<at::Tensor> tensors{tensor.detach().contiguous()};
  state_->run(named("send to rank " + std::to_string(to), {}, tensor),
              [&] { return state_->group->send(tensors, to, tag); });
}

void ProcessGroup::receive(at::Tensor tensor, int from, int tag) {
  state_->expect_other(from, "receive from");
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> tensors{tensor.contiguous()};
  state_->run(named("receive from rank " + std::to_string(from), {}, tensor),
              [&] { return state_->group->recv(tensors, from, tag); });
  if (!tensors[0].is_same(tensor)) tensor.copy_(tensors[0]);
}

ProcessGroup ProcessGroup::duplicate() {
  return copy(false);
}

ProcessGroup ProcessGroup::for_layers() {
  return copy(true);
}

ProcessGroup ProcessGroup::copy(bool shares_nccl) {
  ProcessGroup other;
  other.state_->options = state_->options;
  other.state_->place = state_->place;
  if (state_->is_alone()) return other;
  other.state_->store = c10::make_intrusive<c10d::PrefixStore>(
      "duplicate/" + std::to_string(++state_->duplicates), state_->store);
  other.state_->form(state_.get(), shares_nccl);
  return other;
}

}  // namespace tune
