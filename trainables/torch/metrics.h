// Means of what was measured on batches, weighted by their samples, over any number of ranks: what
// one process would have measured on all samples.
//
//   tune::Metrics metrics;
//   metrics.add("loss", loss.item<double>(), batch);   // for each batch, on every rank
//   return metrics.over(group).result();               // the same on all ranks
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/value.h"
#include "trainables/torch/process_group.h"

namespace tune {

class Metrics {
 public:
  // `mean` over so many samples; none are as if nothing was added. Throws Error (kBadInput) when
  // `samples` is negative.
  void add(const std::string& name, double mean, std::int64_t samples = 1);
  // The same for a mean of one number that lies on a device: sums stay there, and nothing waits for
  // them until a result is asked for.
  void add(const std::string& name, const at::Tensor& mean, std::int64_t samples = 1);

  // All that was added on all ranks, equal on all of them bit for bit. Ranks need not have the same
  // names: one whose part of a validation set was empty has none. All ranks call it.
  Metrics over(ProcessGroup& group) const;

  bool contains(const std::string& name) const { return sums_.contains(name); }
  // Throw Error (kBadInput) when there is nothing of that name.
  double mean(const std::string& name) const;
  std::int64_t samples(const std::string& name) const;
  Result result() const;  // every mean, by name
  void clear() { sums_.clear(); }

 private:
  struct Sum {
    double total() const;

    double value = 0;
    std::int64_t samples = 0;
    at::Tensor on_device = {};  // what tensors add to the value
  };
  Sum* sum_of(const std::string& name, std::int64_t samples);  // null: of no samples
  const Sum& at(const std::string& name) const;

  std::map<std::string, Sum> sums_;
};

}  // namespace tune
