#include "trainables/torch/metrics.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cstring>

#include "core/error.h"

namespace tune {
namespace {

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(const std::string& bytes, std::size_t& position) {
  T value;
  std::memcpy(&value, bytes.data() + position, sizeof value);
  position += sizeof value;
  return value;
}

}  // namespace

double Metrics::Sum::total() const {
  return on_device.defined() ? value + on_device.item<double>() : value;
}

// The mean of no samples is not a number.
Metrics::Sum* Metrics::sum_of(const std::string& name, std::int64_t samples) {
  if (samples < 0) {
    throw Error(ErrorCode::kBadInput,
                "metric " + name + ": a mean over " + std::to_string(samples) + " samples");
  }
  if (samples == 0) return nullptr;
  Sum& sum = sums_[name];
  sum.samples += samples;
  return &sum;
}

void Metrics::add(const std::string& name, double mean, std::int64_t samples) {
  if (Sum* sum = sum_of(name, samples)) sum->value += mean * static_cast<double>(samples);
}

void Metrics::add(const std::string& name, const at::Tensor& mean, std::int64_t samples) {
  if (mean.numel() != 1) {
    throw Error(ErrorCode::kBadInput, "metric " + name + ": a tensor of " +
                                          std::to_string(mean.numel()) +
                                          " numbers, one is wanted: its mean()");
  }
  Sum* sum = sum_of(name, samples);
  if (sum == nullptr) return;
  const at::NoGradGuard no_gradients;
  const at::Tensor value = mean.detach().to(at::kDouble).reshape({}) * samples;
  sum->on_device = sum->on_device.defined() ? sum->on_device + value : value;
}

// Ranks of one group run the same program on machines of one kind: bytes as they lie in memory.
Metrics Metrics::over(ProcessGroup& group) const {
  std::string own;
  for (const auto& [name, sum] : sums_) {
    append(own, name.size());
    own += name;
    append(own, sum.total());
    append(own, sum.samples);
  }
  Metrics all;
  for (const std::string& bytes : group.all_gather_texts(own, "metrics")) {
    for (std::size_t position = 0; position < bytes.size();) {
      const auto length = take<std::size_t>(bytes, position);
      Sum& sum = all.sums_[bytes.substr(position, length)];
      position += length;
      sum.value += take<double>(bytes, position);
      sum.samples += take<std::int64_t>(bytes, position);
    }
  }
  return all;
}

const Metrics::Sum& Metrics::at(const std::string& name) const {
  const auto found = sums_.find(name);
  if (found != sums_.end()) return found->second;
  std::string there;
  for (const auto& [other, sum] : sums_) there += (there.empty() ? "" : ", ") + other;
  throw Error(ErrorCode::kBadInput, "nothing was measured as " + name + "; there is " +
                                        (there.empty() ? "nothing" : there));
}

double Metrics::mean(const std::string& name) const {
  const Sum& sum = at(name);
  return sum.total() / static_cast<double>(sum.samples);
}

std::int64_t Metrics::samples(const std::string& name) const {
  return at(name).samples;
}

Result Metrics::result() const {
  Result result;
  for (const auto& [name, sum] : sums_) result.set(name, mean(name));
  return result;
}

}  // namespace tune
