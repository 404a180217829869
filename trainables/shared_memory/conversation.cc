#include "trainables/shared_memory/conversation.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "trainables/shared_memory/failure.h"

namespace tune::shared_memory {

struct Operation {
  std::unique_ptr<Motion> motion;
  std::function<void()> finish;
  std::chrono::milliseconds longest{};
  std::optional<std::chrono::steady_clock::time_point> began;  // to be waited for
  bool is_collective = true;
  bool is_in_background = false;
  std::vector<std::function<void()>> callbacks;
  std::exception_ptr error;
  std::atomic<bool> has_ended = false;
};

namespace {

using Microseconds = std::chrono::microseconds;
using Milliseconds = std::chrono::milliseconds;

constexpr Microseconds kMoment{150};
constexpr Microseconds kMomentOfMany{10};  // ranks, more than there are processors
constexpr Milliseconds kShortestSleep{2};
constexpr Milliseconds kLongestSleep{50};
constexpr Milliseconds kLookAfter{1};
// A process that has ended may have said before all that others still wait for.
constexpr std::chrono::seconds kGraceOfEnded{1};
constexpr int kPauses = 32;  // between two looks

int processors() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  for (int i = 0; i < kPauses; ++i) __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

std::string names_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

std::exception_ptr failure(FailureKind kind, const std::string& what) {
  return std::make_exception_ptr(Failure(kind, what));
}

}  // namespace

Conversation::Conversation(std::unique_ptr<RankMemory> memory, const Patience& patience)
    : memory_(std::move(memory)),
      patience_(patience),
      spin_(memory_->size() <= processors() ? kMoment : kMomentOfMany),
      messages_(*memory_),
      ended_since_(static_cast<std::size_t>(memory_->size())),
      has_left_(static_cast<std::size_t>(memory_->size())) {}

Conversation::~Conversation() {
  if (::getpid() != process_) {  // a copy in a process that this rank has forked
    if (thread_.joinable()) thread_.detach();
    return;
  }
  try {
    std::unique_lock lock(mutex_);
    while (!collectives_.empty()) {
      const OperationPtr last = collectives_.back();
      lock.unlock();
      wait(last, Milliseconds(0));
      lock.lock();
    }
  } catch (const std::exception&) {
    // The failure was, or will be, seen where the operation is waited for.
  }
  abort("the group has ended");
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  background_.notify_all();
  memory_->ring_own();
  if (thread_.joinable()) thread_.join();
}

// ---- Operations ---------------------------------------------------------------------------------

OperationPtr Conversation::collective(CallKind kind, const MakeCollective& make, Start start) {
  const auto operation = std::make_shared<Operation>();
  operation->finish = std::move(start.finish);
  operation->began = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    operation->longest = start.longest.count() < 0 ? patience_.longest : start.longest;
    Call call;
    call.number = ++calls_;
    call.kind = kind;
    if (broken_) {
      fail(*operation, broken_);
    } else {
      operation->motion = make(*memory_, call);
      collectives_.push_back(operation);
    }
  }
  begin(operation, start.pace);
  return operation;
}

OperationPtr Conversation::message(const MakeMessage& make, Start start) {
  const auto operation = std::make_shared<Operation>();
  operation->finish = std::move(start.finish);
  operation->is_collective = false;
  {
    const std::lock_guard lock(mutex_);
    operation->longest = start.longest.count() < 0 ? patience_.longest : start.longest;
    if (broken_) {
      fail(*operation, broken_);
    } else {
      operation->motion = make(messages_);
      transfers_.push_back(operation);
    }
  }
  begin(operation, start.pace);
  return operation;
}

void Conversation::begin(const OperationPtr& operation, Pace pace) {
  poll();
  if (operation->has_ended || pace == Pace::kWaitedFor) return;
  if (pace == Pace::kLooksFirst && look_for_a_moment(*operation)) return;
  leave_to_background(operation);
}

void Conversation::leave_to_background(const OperationPtr& operation) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(operation->is_in_background, true)) return;
    if (!thread_.joinable()) thread_ = std::thread([this] { work_in_background(); });
  }
  background_.notify_one();
}

void Conversation::wait(const OperationPtr& operation, Milliseconds limit) {
  const auto since = Clock::now();
  if (!operation->has_ended) {
    const std::lock_guard lock(mutex_);
    if (!operation->began) operation->began = since;
  }
  ++waiting_;
  bool is_late = false;
  if (!look_for_a_moment(*operation)) {
    while (!operation->has_ended && !is_late) {
      sleep(operation.get(), since);
      is_late = limit.count() > 0 && Clock::now() - since >= limit;
    }
  }
  stop_waiting();
  if (operation->has_ended) {
    if (operation->error) std::rethrow_exception(operation->error);
    return;
  }
  throw Failure(FailureKind::kTimeout,
                "Timed out after " + std::to_string(limit.count()) + " ms of waiting");
}

// Under the lock: the background may just have seen that somebody waits, and go to sleep.
void Conversation::stop_waiting() {
  bool is_work_left = false;
  {
    const std::lock_guard lock(mutex_);
    --waiting_;
    is_work_left = has_background_work();
  }
  if (is_work_left) background_.notify_one();
}

bool Conversation::has_ended(const OperationPtr& operation) {
  if (!operation->has_ended) poll();
  if (!operation->has_ended) look_after();
  return operation->has_ended;
}

std::exception_ptr error_of(const OperationPtr& operation) {
  return operation->has_ended ? operation->error : nullptr;
}

void Conversation::when_ended(const OperationPtr& operation, std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!operation->has_ended) operation->callbacks.push_back(std::exchange(callback, nullptr));
  }
  if (callback) return callback();
  leave_to_background(operation);
}

void Conversation::abort(const std::string& why) {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    const auto error = failure(FailureKind::kAborted, why);
    break_collectives(error, ended);
    for (const OperationPtr& one : transfers_) {
      fail(*one, error);
      ended.push_back(one);
    }
    transfers_.clear();
  }
  deliver(ended);
}

void Conversation::set_longest(Milliseconds longest) {
  const std::lock_guard lock(mutex_);
  patience_.longest = longest;
}

// ---- Going on -----------------------------------------------------------------------------------

void Conversation::poll() {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    advance_all(ended);
  }
  deliver(ended);
}

void Conversation::advance_all(Ended& ended) {
  while (!collectives_.empty() && advance(*collectives_.front())) {
    const OperationPtr first = collectives_.front();
    collectives_.pop_front();
    ended.push_back(first);
    if (first->error) break_collectives(first->error, ended);
  }
  std::erase_if(transfers_, [&](const OperationPtr& one) {
    if (!advance(*one)) return false;
    ended.push_back(one);
    return true;
  });
}

bool Conversation::advance(Operation& operation) {
  try {
    if (!operation.motion->advance()) return false;
    // Its tensors go with it.
    if (const auto finish = std::exchange(operation.finish, nullptr)) finish();
  } catch (...) {
    fail(operation, std::current_exception());
    return true;
  }
  operation.motion.reset();
  operation.has_ended = true;
  return true;
}

void Conversation::fail(Operation& operation, const std::exception_ptr& error) {
  operation.motion.reset();
  operation.error = error;
  operation.has_ended = true;
}

// The streams between the ranks stand in the middle of something: nothing can follow.
void Conversation::break_collectives(const std::exception_ptr& error, Ended& ended) {
  if (!broken_) broken_ = error;
  for (const OperationPtr& one : collectives_) {
    fail(*one, error);
    ended.push_back(one);
  }
  collectives_.clear();
  memory_->leave();
}

void Conversation::deliver(const Ended& ended) {
  if (ended.empty()) return;
  for (const OperationPtr& one : ended) {
    std::vector<std::function<void()>> callbacks;
    {
      const std::lock_guard lock(mutex_);
      callbacks.swap(one->callbacks);
    }
    for (const auto& callback : callbacks) callback();
  }
  memory_->ring_own();
}

// ---- Waiting ------------------------------------------------------------------------------------

// Longer as long as something moves.
bool Conversation::look_for_a_moment(const Operation& operation) {
  auto until = Clock::now() + spin_;
  std::uint64_t changes = memory_->changes();
  while (!operation.has_ended) {
    poll();
    if (operation.has_ended) break;
    const auto now = Clock::now();
    if (memory_->changes() != changes) {
      changes = memory_->changes();
      until = now + spin_;
    }
    if (now >= until) return false;
    pause_briefly();
  }
  return true;
}

void Conversation::sleep(const Operation* operation, Clock::time_point since) {
  const auto waited = std::chrono::duration_cast<Milliseconds>(Clock::now() - since);
  const std::uint32_t prepared = memory_->prepare_sleep();
  poll();
  const bool is_over = operation != nullptr ? operation->has_ended.load() : waiting_ > 0;
  if (!is_over) memory_->sleep(prepared, std::clamp(waited / 10, kShortestSleep, kLongestSleep));
  memory_->wake();
  poll();
  look_after();
}

void Conversation::look_after() {
  Ended ended;
  {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (now - looked_after_ < kLookAfter) return;
    looked_after_ = now;
    if (memory_->is_any_alone()) patient_since_ = now;
    const std::vector<bool> gone = memory_->segment()->ended();
    for (std::size_t rank = 0; rank < gone.size(); ++rank) {
      if (gone[rank] && !ended_since_[rank]) ended_since_[rank] = now;
      has_left_[rank] = memory_->has_left(static_cast<int>(rank));
    }
    // The last words of those that are gone. A rank that says them from here on, and goes, counts
    // as gone at the next look.
    advance_all(ended);
    if (!collectives_.empty()) {
      if (const auto lost = why_lost(*collectives_.front(), now)) break_collectives(lost, ended);
    }
    std::erase_if(transfers_, [&](const OperationPtr& one) {
      const auto lost = why_lost(*one, now);
      if (!lost) return false;
      fail(*one, lost);
      ended.push_back(one);
      return true;
    });
  }
  deliver(ended);
}

// Of those awaited: any that is gone; else, of a group whose rank ended some time ago, that one.
std::string Conversation::who_is_gone(const std::vector<int>& awaited,
                                      Clock::time_point now) const {
  for (int rank = 0; rank < memory_->size(); ++rank) {
    const auto& since = ended_since_[static_cast<std::size_t>(rank)];
    const bool is_awaited = std::ranges::count(awaited, rank) > 0;
    const std::string process = " (process " + std::to_string(memory_->segment()->pid(rank)) + ")";
    if (is_awaited && has_left_[static_cast<std::size_t>(rank)]) {
      return "rank " + std::to_string(rank) + process + " has left the group";
    }
    if (since && (is_awaited || now - *since >= kGraceOfEnded)) {
      return "rank " + std::to_string(rank) + process + " has ended";
    }
  }
  return {};
}

std::exception_ptr Conversation::why_lost(Operation& operation, Clock::time_point now) {
  const std::vector<int> awaited = operation.motion->awaited();
  // Of several sources of a message any may still come.
  if (operation.is_collective || awaited.size() == 1) {
    const std::string gone =
        who_is_gone(awaited, operation.is_collective ? now : Clock::time_point{});
    if (!gone.empty()) return failure(FailureKind::kEnded, gone);
  } else if (std::ranges::all_of(awaited, [&](int rank) {
               return !who_is_gone({rank}, Clock::time_point{}).empty();
             })) {
    return failure(FailureKind::kEnded, names_of(awaited) + " have left the group or ended");
  }
  if (!operation.began) return nullptr;
  const bool is_late = now - std::max(*operation.began, patient_since_) >= patience_.timeout ||
                       now - *operation.began >= operation.longest;
  if (!is_late) return nullptr;
  return failure(FailureKind::kTimeout, "Timed out waiting for " + names_of(awaited));
}

// ---- The background -----------------------------------------------------------------------------

bool Conversation::has_background_work() const {
  const auto is_left = [](const OperationPtr& one) { return one->is_in_background; };
  return waiting_ == 0 &&
         (std::ranges::any_of(collectives_, is_left) || std::ranges::any_of(transfers_, is_left));
}

void Conversation::work_in_background() {
  std::unique_lock lock(mutex_);
  for (;;) {
    background_.wait(lock, [this] { return is_ending_ || has_background_work(); });
    const auto since = Clock::now();
    while (!is_ending_ && has_background_work()) {
      lock.unlock();
      sleep(nullptr, since);
      lock.lock();
    }
    if (is_ending_) return;
  }
}

}  // namespace tune::shared_memory
