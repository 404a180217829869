#include "trainables/torch/watched_gloo.h"

#include <atomic>
#include <exception>
#include <functional>
#include <stdexcept>
#include <utility>

namespace tune {
namespace {

using Future = c10::ivalue::Future;

// Settled once: by the end of a collective or by the watch, whichever comes first.
struct Settlement {
  explicit Settlement(const c10::TypePtr& type) : future(c10::make_intrusive<Future>(type)) {}

  void fail(std::exception_ptr error) {
    if (!settled.exchange(true)) future->setError(std::move(error));
  }
  void take(Future& done) {
    if (done.hasError()) return fail(done.exception_ptr());
    if (!settled.exchange(true)) future->markCompleted(done.value());
  }

  std::atomic<bool> settled = false;
  c10::intrusive_ptr<Future> future;
};

std::exception_ptr timed_out() {
  return std::make_exception_ptr(
      c10::DistBackendError({__func__, __FILE__, __LINE__}, "Timed out waiting for other ranks"));
}

class WatchedWork : public c10d::Work {
 public:
  WatchedWork(c10::intrusive_ptr<c10d::Work> work, std::shared_ptr<Settlement> settlement)
      : Work(-1, work->retrieveOpType()), work_(std::move(work)), end_(std::move(settlement)) {}

  bool isCompleted() override { return end_->future->completed(); }
  bool isSuccess() const override { return end_->future->completed() && !end_->future->hasError(); }
  std::exception_ptr exception() const override { return end_->future->exception_ptr(); }
  std::vector<at::Tensor> result() override { return work_->result(); }
  c10::intrusive_ptr<Future> getFuture() override { return end_->future; }
  std::uint64_t getSequencenumber() const override { return work_->getSequencenumber(); }
  void synchronize() override {}                   // of the CPU
  bool wait(std::chrono::milliseconds) override {  // the watch knows how long
    end_->future->wait();
    if (end_->future->hasError()) std::rethrow_exception(end_->future->exception_ptr());
    return true;
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  std::shared_ptr<Settlement> end_;
};

// A send or a receive. It has no future: only those that wait for it hear of its end, so that the
// watch begins with the wait.
class WatchedTransfer : public c10d::Work {
 public:
  WatchedTransfer(c10::intrusive_ptr<c10d::Work> work, std::shared_ptr<GroupWatch> watch,
                  std::chrono::milliseconds longest)
      : Work(-1, work->retrieveOpType()),
        work_(std::move(work)),
        watch_(std::move(watch)),
        longest_(longest) {}

  bool isCompleted() override { return work_->isCompleted(); }
  bool isSuccess() const override { return !*given_up_ && work_->isSuccess(); }
  std::exception_ptr exception() const override {
    return *given_up_ ? timed_out() : work_->exception();
  }
  int sourceRank() const override { return work_->sourceRank(); }
  std::vector<at::Tensor> result() override { return work_->result(); }
  std::uint64_t getSequencenumber() const override { return work_->getSequencenumber(); }
  void synchronize() override {}  // of the CPU
  void abort() override { work_->abort(); }
  bool wait(std::chrono::milliseconds limit) override {
    const Watched watched(*watch_, [work = work_, given_up = given_up_] {
      *given_up = true;
      work->abort();
    });
    const bool is_done = work_->wait(limit == kNoTimeout ? longest_ : limit);
    if (*given_up_) std::rethrow_exception(timed_out());
    return is_done;
  }

 private:
  struct Watched {
    Watched(GroupWatch& group, std::function<void()> give_up)
        : watch(group), number(group.begin(std::move(give_up))) {}
    ~Watched() { watch.end(number); }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    GroupWatch& watch;
    std::uint64_t number;
  };

  c10::intrusive_ptr<c10d::Work> work_;
  std::shared_ptr<GroupWatch> watch_;
  std::chrono::milliseconds longest_;
  std::shared_ptr<std::atomic<bool>> given_up_ = std::make_shared<std::atomic<bool>>(false);
};

// Gloo's own, for one that says none, is that of forming the group: a Reducer says none.
template <class Options>
Options with_time(Options how, std::chrono::milliseconds time) {
  if (how.timeout == c10d::kUnsetTimeout) how.timeout = time;
  return how;
}

}  // namespace

WatchedGloo::WatchedGloo(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                         c10::intrusive_ptr<Options> options, std::shared_ptr<GroupWatch> watch)
    : ProcessGroupGloo(store, rank, size, std::move(options)), watch_(std::move(watch)) {}

// A collective that is given up goes on in a thread of Gloo's, and Gloo's destructor would wait for
// it: it is then never destroyed. The group is of no use any more, and its process about to end.
WatchedGloo::WorkPtr WatchedGloo::watched(const WorkPtr& work) {
  const auto done = work->getFuture();
  const auto end = std::make_shared<Settlement>(done->elementType());
  const auto keep = c10::intrusive_ptr<WatchedGloo>::reclaim_copy(this);
  const c10::weak_intrusive_ptr<WatchedGloo> self(keep);
  const std::uint64_t number = watch_->begin([end, self] {
    if (auto gloo = self.lock()) static_cast<void>(gloo.release());
    end->fail(timed_out());
  });
  const std::weak_ptr<GroupWatch> watch = watch_;
  done->addCallback([end, watch, number](Future& finished) {
    if (const auto alive = watch.lock()) alive->end(number);
    end->take(finished);
  });
  return c10::make_intrusive<WatchedWork>(work, end);
}

WatchedGloo::WorkPtr WatchedGloo::watched_transfer(const WorkPtr& work) const {
  return c10::make_intrusive<WatchedTransfer>(work, watch_, longest_);
}

WatchedGloo::WorkPtr WatchedGloo::broadcast(std::vector<at::Tensor>& tensors,
                                            const c10d::BroadcastOptions& how) {
  return watched(ProcessGroupGloo::broadcast(tensors, with_time(how, longest_)));
}

WatchedGloo::WorkPtr WatchedGloo::allreduce(std::vector<at::Tensor>& tensors,
                                            const c10d::AllreduceOptions& how) {
  return watched(ProcessGroupGloo::allreduce(tensors, with_time(how, longest_)));
}

WatchedGloo::WorkPtr WatchedGloo::allreduce_coalesced(std::vector<at::Tensor>& tensors,
                                                      const c10d::AllreduceCoalescedOptions& how) {
  return watched(ProcessGroupGloo::allreduce_coalesced(tensors, with_time(how, longest_)));
}

WatchedGloo::WorkPtr WatchedGloo::allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                            std::vector<at::Tensor>& inputs,
                                            const c10d::AllgatherOptions& how) {
  return watched(ProcessGroupGloo::allgather(outputs, inputs, with_time(how, longest_)));
}

WatchedGloo::WorkPtr WatchedGloo::barrier(const c10d::BarrierOptions& how) {
  return watched(ProcessGroupGloo::barrier(with_time(how, longest_)));
}

WatchedGloo::WorkPtr WatchedGloo::send(std::vector<at::Tensor>& tensors, int to, int tag) {
  return watched_transfer(ProcessGroupGloo::send(tensors, to, tag));
}

WatchedGloo::WorkPtr WatchedGloo::recv(std::vector<at::Tensor>& tensors, int from, int tag) {
  return watched_transfer(ProcessGroupGloo::recv(tensors, from, tag));
}

WatchedGloo::WorkPtr WatchedGloo::recvAnysource(std::vector<at::Tensor>& tensors, int tag) {
  return watched_transfer(ProcessGroupGloo::recvAnysource(tensors, tag));
}

}  // namespace tune
