// One connection between a driver and an agent. Frames of one direction arrive in order, late,
// sometimes twice; when the connection is lost, frames under way are lost, and neither side is
// told.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "simulator/world.h"

namespace tune::simulator {

class Connection {
 public:
  using End = std::function<void(std::string)>;  // receives a frame
  enum class To : std::uint8_t { kDriver, kAgent };
  static constexpr int kSlower = 100;  // times as late as others is a slow frame

  Connection(World& world, End driver, End agent)
      : world_(world), ends_{std::move(driver), std::move(agent)} {}

  void send(To to, std::string frame) {
    if (is_closed_ || is_lost_) return;  // missed, and sent again
    const bool doubled = world_.chance(world_.scenario.rates.frame_doubled);
    if (doubled) plan_arrival(to, frame);
    plan_arrival(to, std::move(frame));
  }

  // Loses the connection for that time; frames under way are lost.
  void lose(Time duration) {
    if (is_closed_) return;
    is_lost_ = true;
    under_way_ = new_life();
    world_.queue.after(duration, life_, [this] { is_lost_ = false; });
  }

  // Closes it for ever: the process at one end is gone. Frames under way to the driver still come,
  // perhaps after it knows of the end.
  void close() {
    is_closed_ = true;
    if (world_.chance(700'000)) linger_ = world_.about(kLinger);
  }
  void cut() {
    is_closed_ = true;
    under_way_ = new_life();
  }

 private:
  void plan_arrival(To to, std::string frame) {
    const auto index = static_cast<std::size_t>(to);
    Time delay = world_.about(world_.scenario.network_delay);
    if (world_.chance(world_.scenario.rates.frame_slow)) delay *= kSlower;
    // Never before an earlier frame of the same direction.
    last_arrival_[index] = std::max(last_arrival_[index], world_.queue.now() + delay);
    world_.queue.after(last_arrival_[index] - world_.queue.now(), under_way_,
                       [this, index, frame = std::move(frame)] { arrive(index, frame); });
  }
  // All linger for the same time, so that they stay in order.
  void arrive(std::size_t index, const std::string& frame) {
    if (linger_ == Time{}) return ends_[index](frame);
    world_.queue.after(linger_, under_way_, [this, index, frame] { ends_[index](frame); });
  }

  static constexpr Time kLinger = std::chrono::milliseconds(20);

  World& world_;
  End ends_[2];
  bool is_closed_ = false;
  bool is_lost_ = false;
  Time linger_{};
  Time last_arrival_[2]{};
  Life under_way_ = new_life();
  Life life_ = new_life();
};

}  // namespace tune::simulator
