#include "trainables/rank_failure.h"

#include <atomic>

namespace tune {
namespace {

std::atomic<bool> has_failed = false;

}  // namespace

void say_rank_failed() {
  has_failed = true;
}

bool has_rank_failed() {
  return has_failed;
}

}  // namespace tune
