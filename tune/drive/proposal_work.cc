#include "tune/drive/proposal_work.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/current_exception.h"
#include "core/error.h"
#include "core/platform/deaf_thread.h"
#include "core/platform/process.h"
#include "tune/drive/answer_times.h"

namespace tune {

using std::chrono::steady_clock;

struct ProposalWork::Shared {
  FileDescriptor signal{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;
  std::condition_variable changed;
  Asking::Question question;
  Searcher::Question waiting;
  steady_clock::time_point asked;
  AnswerTimes times;
  bool is_busy = false;
  bool ends = false;
  std::optional<Proposed> answer;
  std::thread thread;
};

Proposed answer_now(std::uint64_t number, const Searcher::Question& make) {
  Proposed proposed{number, {}, {}, {}};
  try {
    if (!make) throw Error(ErrorCode::kBadInput, "the searcher gave no question to answer");
    proposed.answer.bytes = make();
    if (proposed.answer.bytes.size() > kMaxAnswerBytes) {
      throw Error(ErrorCode::kBadInput, fmt::format("its answer has {} bytes, at most {} are taken",
                                                    proposed.answer.bytes.size(), kMaxAnswerBytes));
    }
  } catch (...) {
    proposed.answer.bytes.clear();
    proposed.error = describe_current_exception();
    if (proposed.error.empty()) proposed.error = "it failed without a reason";
  }
  return proposed;
}

void ProposalWork::start() {
  auto shared = std::make_shared<Shared>();
  if (!shared->signal.is_open()) {
    throw Error(ErrorCode::kProcess,
                fmt::format("making a descriptor for proposals: {}", std::strerror(errno)));
  }
  shared->thread = deaf_thread([shared] { work(shared); });
  shared_ = std::move(shared);
}

ProposalWork::~ProposalWork() {
  if (!shared_) return;
  bool is_idle = false;
  {
    std::unique_lock lock(shared_->mutex);
    shared_->ends = true;
    shared_->waiting = nullptr;
    shared_->changed.notify_all();
    is_idle = shared_->changed.wait_for(lock, kEndPatience, [&] { return !shared_->is_busy; });
  }
  is_idle ? shared_->thread.join() : shared_->thread.detach();
}

void ProposalWork::ask(const Asking::Question& question, Searcher::Question make) {
  if (!shared_) start();
  {
    const std::lock_guard lock(shared_->mutex);
    TUNE_CHECK(!shared_->is_busy);
    shared_->question = question;
    shared_->waiting = std::move(make);
    shared_->asked = steady_clock::now();
    shared_->is_busy = true;
  }
  shared_->changed.notify_all();
}

std::optional<Proposed> ProposalWork::take() {
  if (!shared_) return std::nullopt;
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->answer) return std::nullopt;
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(shared_->signal.get(), &count, sizeof count);
  return std::exchange(shared_->answer, std::nullopt);
}

int ProposalWork::descriptor() const {
  return shared_ ? shared_->signal.get() : -1;
}

void ProposalWork::work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->ends || shared->is_busy; });
    if (shared->ends) break;
    const Asking::Question question = shared->question;
    Searcher::Question make = std::exchange(shared->waiting, nullptr);
    lock.unlock();
    Proposed proposed = answer_now(question.number, make);
    make = nullptr;  // frees its memory before anyone waits for it
    lock.lock();
    proposed.took = shared->times.said(steady_clock::now() - shared->asked, question.count);
    shared->answer = std::move(proposed);
    shared->is_busy = false;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(shared->signal.get(), &one, sizeof one);
    shared->changed.notify_all();
  }
  shared->is_busy = false;
  shared->changed.notify_all();
}

}  // namespace tune
