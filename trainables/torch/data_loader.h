// Batches of a data set in a sampler's order, made ahead by threads if wanted.
//
//   DataLoader loader(data, std::make_shared<DistributedSampler>(data->size(), options),
//                     {.batch_size = 64, .workers = 2});
//   for (Batch& batch : loader) { ... }   // one epoch; the next loop goes through the next one
//
// The state is the sampler's: what the loop was given counts, not what was made ahead. One thread
// uses a loader. Errors of the data set come out of the loop at the batch they belong to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/value.h"
#include "trainables/torch/dataset.h"
#include "trainables/torch/sampler.h"

namespace tune {

struct DataLoaderOptions {
  std::int64_t batch_size = 1;  // of this rank
  bool drop_last = false;       // leaves out the batch at an epoch's end that is not full
  int workers = 0;              // threads that make batches; 0: the caller's own
  int prefetch = 2;             // batches that each worker makes ahead
  bool pin_memory = false;      // for copies to a GPU that do not wait; nothing without CUDA
  // Makes a batch of samples, as the data set's get() gives them: pads those of different lengths,
  // say. Called by several threads at once when there are workers. Empty: Dataset::get_batch.
  std::function<Batch(std::vector<Batch> samples)> collate = {};
};

class DataLoader {
 public:
  // Refuses (kBadInput) numbers below 1 (workers: below 0), and a batch that drop_last never fills.
  DataLoader(std::shared_ptr<Dataset> data, std::shared_ptr<Sampler> sampler,
             const DataLoaderOptions& options);
  // Waits for the sample that each worker is at.
  ~DataLoader();

  // The next batch, or nothing once at the end of each loop, which is an epoch's unless
  // set_batches_per_loop was called; the next epoch follows. A batch whose making threw is tried
  // again by the next call.
  std::optional<Batch> next();

  // Begins that epoch at its start. After a loop that was left early this is how to begin anew;
  // otherwise the next loop goes on where that one stopped.
  void set_epoch(std::int64_t epoch);
  std::int64_t epoch() const { return sampler_->epoch(); }

  std::int64_t batches() const;  // of a whole epoch

  // Loops from now on end after so many batches, or with the epoch if that comes first; the next
  // loop goes on there. 0: with the epoch. Refused (kBadInput) below 0.
  void set_batches_per_loop(std::int64_t batches);
  std::int64_t batches_given() const;  // of the present epoch
  std::int64_t batches_left() const;   // of the next loop, if none is under way

  Value state() const { return sampler_->state(); }
  void load_state(const Value& state);

  class Iterator {
   public:
    Iterator& operator++();
    Batch& operator*() { return *batch_; }
    Batch* operator->() { return &*batch_; }
    bool operator!=(const Iterator&) const { return batch_.has_value(); }

   private:
    friend class DataLoader;
    explicit Iterator(DataLoader* loader) : loader_(loader) {}
    DataLoader* loader_;
    std::optional<Batch> batch_;
  };
  Iterator begin() { return ++Iterator(this); }
  Iterator end() { return Iterator(nullptr); }

 private:
  class Workers;
  void start_epoch();
  Batch make(const at::Tensor& indices) const;
  Batch collated(const at::Tensor& indices) const;

  std::shared_ptr<Dataset> data_;
  std::shared_ptr<Sampler> sampler_;
  DataLoaderOptions options_;
  bool started_ = false;       // the data set and the workers know of the present epoch
  std::int64_t per_loop_ = 0;  // 0: loops end with the epoch
  std::int64_t looped_ = 0;    // batches that the present loop gave
  std::int64_t asked_ = 0;     // the position up to which workers have been asked for batches
  std::unique_ptr<Workers> workers_;
};

}  // namespace tune
