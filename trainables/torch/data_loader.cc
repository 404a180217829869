#include "trainables/torch/data_loader.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

namespace tune {

namespace {

// A new thread that only sets its number keeps it until its first parallel operation, which gives
// it the number of the whole process: 8 workers on 16 CPUs then have 128 threads. It has been given
// that number when it is asked for it, once by LibTorch and once by what this program compiled of
// LibTorch's headers.
void use_one_thread() {
  at::internal::lazy_init_num_threads();
  at::get_num_threads();
  at::set_num_threads(1);
}

}  // namespace

// Threads that make the batches they are asked for; take() gives them in the order they were asked
// for.
class DataLoader::Workers {
 public:
  using Make = std::function<Batch(const at::Tensor& indices)>;

  Workers(int count, Make make) : make_(std::move(make)) {
    // A worker's operations are its own thread's alone: see use_one_thread(). LibTorch also takes
    // the number for threads still to come, so the old one is set again when all workers have said
    // theirs.
    const int threads = at::get_num_threads();
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ready_ == count; });
    }
    at::set_num_threads(threads);
  }

  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void ask(at::Tensor indices) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::make_shared<Job>(Job{.indices = std::move(indices)}));
      asked_.push_back(waiting_.back());
    }
    changed_.notify_all();
  }

  std::size_t asked() const { return asked_.size(); }

  Batch take() {
    const std::shared_ptr<Job> job = std::move(asked_.front());
    asked_.pop_front();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return job->is_done; });
    if (job->error) std::rethrow_exception(job->error);
    return std::move(job->batch);
  }

  // Afterwards nothing is asked for, and no worker touches the data set.
  void forget() {
    std::unique_lock lock(mutex_);
    asked_.clear();
    waiting_.clear();
    changed_.wait(lock, [&] { return busy_ == 0; });
  }

 private:
  struct Job {
    at::Tensor indices;
    Batch batch = {};
    std::exception_ptr error = {};
    bool is_done = false;
  };

  void work() {
    std::unique_lock lock(mutex_);
    use_one_thread();  // under the lock: it also sets what threads share
    ++ready_;
    changed_.notify_all();
    while (true) {
      changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (ends_) return;
      const std::shared_ptr<Job> job = std::move(waiting_.front());
      waiting_.pop_front();
      ++busy_;
      lock.unlock();
      try {
        job->batch = make_(job->indices);
      } catch (...) {
        job->error = std::current_exception();
      }
      lock.lock();
      job->is_done = true;
      --busy_;
      changed_.notify_all();
    }
  }

  Make make_;
  std::deque<std::shared_ptr<Job>> asked_;  // the loader's own thread alone
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> waiting_;
  int ready_ = 0;
  int busy_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

namespace {

void expect_at_least(const char* name, std::int64_t value, std::int64_t low) {
  if (value >= low) return;
  throw Error(ErrorCode::kBadInput, std::string(name) + " of a loader is " + std::to_string(value) +
                                        ", at least " + std::to_string(low) + " is wanted");
}

at::Tensor pinned(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu() ? tensor.pin_memory() : tensor;
}

}  // namespace

DataLoader::DataLoader(std::shared_ptr<Dataset> data, std::shared_ptr<Sampler> sampler,
                       const DataLoaderOptions& options)
    : data_(std::move(data)), sampler_(std::move(sampler)), options_(options) {
  expect_at_least("batch_size", options_.batch_size, 1);
  expect_at_least("workers", options_.workers, 0);
  expect_at_least("prefetch", options_.prefetch, 1);
  if (options_.drop_last && batches() == 0) {
    throw Error(ErrorCode::kBadInput, "drop_last leaves no batch: batch_size is " +
                                          std::to_string(options_.batch_size) + ", this rank has " +
                                          std::to_string(sampler_->size()) + " samples");
  }
}

DataLoader::~DataLoader() = default;

std::int64_t DataLoader::batches() const {
  const std::int64_t size = sampler_->size();
  const std::int64_t rest = options_.drop_last ? 0 : options_.batch_size - 1;
  return (size + rest) / options_.batch_size;
}

std::optional<Batch> DataLoader::next() {
  start_epoch();
  const std::int64_t end = std::min(batches() * options_.batch_size, sampler_->size());
  const auto indices = [&](std::int64_t begin) {
    return sampler_->indices().slice(0, begin, std::min(begin + options_.batch_size, end));
  };
  if (sampler_->position() >= end) {
    set_epoch(epoch() + 1);
    return {};
  }
  if (per_loop_ > 0 && looped_ == per_loop_) {
    looped_ = 0;
    return {};
  }
  std::optional<Batch> batch;
  if (workers_) {
    const auto ahead = static_cast<std::size_t>(options_.workers) * options_.prefetch;
    for (; asked_ < end && workers_->asked() < ahead; asked_ += options_.batch_size) {
      workers_->ask(indices(asked_));
    }
    started_ = false;  // should it throw, all begins again at this batch
    batch = workers_->take();
    started_ = true;
  } else {
    batch = make(indices(sampler_->position()));
  }
  sampler_->next(options_.batch_size);
  ++looped_;
  return batch;
}

void DataLoader::set_epoch(std::int64_t epoch) {
  sampler_->set_epoch(epoch);
  started_ = false;
  looped_ = 0;
}

void DataLoader::load_state(const Value& state) {
  sampler_->load_state(state);
  started_ = false;
  looped_ = 0;
}

void DataLoader::set_batches_per_loop(std::int64_t batches) {
  expect_at_least("batches_per_loop", batches, 0);
  per_loop_ = batches;
  looped_ = 0;
}

std::int64_t DataLoader::batches_given() const {
  return (sampler_->position() + options_.batch_size - 1) / options_.batch_size;
}

std::int64_t DataLoader::batches_left() const {
  const std::int64_t end = std::min(batches() * options_.batch_size, sampler_->size());
  const std::int64_t samples = std::max<std::int64_t>(0, end - sampler_->position());
  const std::int64_t of_epoch = (samples + options_.batch_size - 1) / options_.batch_size;
  return per_loop_ > 0 ? std::min(per_loop_, of_epoch) : of_epoch;
}

void DataLoader::start_epoch() {
  if (started_) return;
  if (options_.workers > 0 && !workers_) {
    workers_ = std::make_unique<Workers>(
        options_.workers, [this](const at::Tensor& indices) { return make(indices); });
  }
  if (workers_) workers_->forget();
  data_->set_epoch(epoch());
  asked_ = sampler_->position();
  started_ = true;
}

Batch DataLoader::make(const at::Tensor& indices) const {
  const at::NoGradGuard no_gradients;
  Batch batch = collated(indices);
  if (options_.pin_memory && at::hasCUDA()) {
    batch.data = pinned(batch.data);
    batch.target = pinned(batch.target);
    for (at::Tensor& tensor : batch.more) tensor = pinned(tensor);
  }
  return batch;
}

Batch DataLoader::collated(const at::Tensor& indices) const {
  if (!options_.collate) return data_->get_batch(indices);
  std::vector<Batch> samples;
  const std::int64_t* index = indices.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < indices.numel(); ++i) samples.push_back(data_->get(index[i]));
  return options_.collate(std::move(samples));
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  batch_ = loader_->next();
  return *this;
}

}  // namespace tune
