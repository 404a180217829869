// GroupWatch: how long the collectives of a group that are under way may take: the group's timeout,
// but as long as a rank is alone (see trainables/solitude.h) the time of all begins anew.
//
// Neither Gloo nor NCCL can give a collective more time once it has begun, and when it begins no
// rank knows whether another will be alone. One long time for all would be simpler; a rank that
// hangs would then hold its GPUs for ten minutes instead of one. So they get the long time, and
// this gives up on them earlier.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace tune {

class GroupWatch {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // `any_alone` says whether a rank of the group is alone; it may block, and is then not asked
  // again before it answers. It must not throw and own all that it uses.
  GroupWatch(std::function<bool()> any_alone, Milliseconds timeout);
  ~GroupWatch();
  GroupWatch(const GroupWatch&) = delete;
  GroupWatch& operator=(const GroupWatch&) = delete;

  // A collective begins. Ends with end(), or when `is_over` says so. When its time is over before,
  // `give_up` is called, once. Both are called from a thread of the watch's.
  std::uint64_t begin(std::function<void()> give_up, std::function<bool()> is_over = {});
  void end(std::uint64_t collective);

 private:
  using Clock = std::chrono::steady_clock;
  struct Collective {
    Clock::time_point began;
    std::function<void()> give_up;
    std::function<bool()> is_over;
  };
  struct Question;
  void watch();
  void look(std::unique_lock<std::mutex>& lock);
  bool is_any_alone();

  const Milliseconds timeout_;
  const Milliseconds period_;  // between two looks
  std::shared_ptr<Question> question_;
  Clock::time_point patient_since_{};  // when a rank was last seen alone
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Collective> under_way_;
  std::uint64_t last_ = 0;
  bool ending_ = false;
  std::thread thread_;  // the last member: it uses all others
};

}  // namespace tune
