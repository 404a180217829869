#include "trainables/torch/device.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "core/platform/node.h"
#include "core/rank_environment.h"
#include "trainables/torch/cuda_part.h"
#include "trainables/torch/torch_error.h"
#include "trainables/trainable.h"

namespace tune {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// The number that is all of the text.
template <class Number>
bool read_number(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end;
}

void check_shown(const std::string& who, int index) {
  if (index == 0 || !sees_mig_instance()) return;
  bad_input(who + " is " + std::to_string(index) + ", and CUDA_VISIBLE_DEVICES is " +
            variable("CUDA_VISIBLE_DEVICES") +
            ": of a list with MIG instances CUDA shows a process the first alone: start the ranks "
            "with tune launch, or name each one's own");
}

int own_index(int gpus) {
  for (const char* name : {"TUNE_DEVICE_INDEX", "LOCAL_RANK"}) {
    const std::string text = variable(name);
    if (text.empty()) continue;
    int index = -1;
    if (!read_number(text, index) || index < 0) {
      bad_input(std::string(name) + " is " + text + ", a whole number from 0 on is wanted");
    }
    if (index < gpus) {
      check_shown(name, index);
      return index;
    }
    bad_input(std::string(name) + " is " + text + ", but " +
              (gpus == 1 ? "1 GPU is" : std::to_string(gpus) + " GPUs are") +
              " visible: start no more ranks than GPUs, or set CUDA_VISIBLE_DEVICES to nothing to "
              "compute on CPUs");
  }
  return 0;
}

// Of the GPU that this rank shares with others.
double own_part() {
  const std::string text = variable("TUNE_GPU_PART");
  if (text.empty()) return 1;
  double part = 0;
  if (!read_number(text, part) || !(part > 0 && part <= 1)) {
    bad_input("TUNE_GPU_PART is " + text + ", a number above 0 and at most 1 is wanted");
  }
  return part;
}

}  // namespace

// GPUs that a list names are the trial's: a missing one is an error, and no reason for the CPU.
int visible_gpus() {
  if (const char* list = std::getenv("CUDA_VISIBLE_DEVICES")) {
    return static_cast<int>(named_gpus(list).size());
  }
  static const int all = gpu_count();  // the driver takes long to answer
  return all;
}

bool sees_mig_instance() {
  return std::ranges::any_of(named_gpus(variable("CUDA_VISIBLE_DEVICES")), is_mig_instance);
}

c10::Device own_device() {
  const int gpus = visible_gpus();
  if (gpus == 0) return c10::kCPU;
  const int index = own_index(gpus);
  const std::string complaint = cuda_part().use_device(index);
  if (!complaint.empty()) bad_input("cannot use the GPUs: " + complaint);
  if (const double part = own_part(); part < 1) cuda_part().limit_memory(part);
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

c10::Device Context::device() const {
  return own_device();
}

}  // namespace tune
