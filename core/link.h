// Link: messages that arrive once and in order over a connection that may break. Pure.
//
// Each message has (epoch, sequence). The sender keeps it until the other side has acknowledged it;
// the receiver drops what it has seen. One frame holds many messages, the acknowledgement of the
// other direction and the epoch it is meant for.
//
// A frame of a newer epoch than the receiver knows comes from a new life of the other side:
// messages that it has not acknowledged are offered to it again, counted from 1. Frames of an older
// life are dropped, and so are messages in frames that are meant for another life of the receiver.
// Each frame also says how many messages former lives of the receiver have acknowledged: a message
// has the same number among all that its sender ever sent, to whichever life.
//
// Messages that a broken connection swallowed are offered again when the receiver misses them, and
// never because time has passed. Each frame, also a heartbeat, says which message comes next; a
// receiver that lacks an earlier one asks for it and names the sender's round. The sender begins a
// new round once for each round that was asked about. Simpler ways fail:
// - Offering everything again every two seconds until it is acknowledged: a receiver that stands
//   still acknowledges nothing, and the queue before it grew by a whole credit each time, without
//   an end (7 GB an hour).
// - Offering it again when the socket reports a reconnect: the accepting side is not told whose
//   connection that is, and messages handed over between the break and the news of it are lost
//   unseen.
// - Asking without naming the round: frames under way show the same gap again, and each of them
//   would start everything anew.
// A receiver that asks about a round has read a frame of it, so everything queued before has left
// the queue: at most two rounds, twice the unacknowledged messages, ever wait in it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tune {

class Link {
 public:
  using Time = std::chrono::nanoseconds;

  // `epoch` counts the lives of this side; later lives have greater ones.
  explicit Link(std::uint64_t epoch) : epoch_(epoch) {}

  // ---- Sending
  void send(std::string message);  // queued
  // The next frame that is due: messages that are new or were missed, or an acknowledgement. Empty
  // when nothing is due. It holds at most kMaxFramePayload bytes of messages (or one message).
  std::string next_frame();
  // Says that the last frame, from next_frame() or heartbeat(), was not taken: it is due again.
  void refused();
  std::vector<std::string> frames();  // all that are due, for a caller that takes each of them
  // A frame without messages. One a second at least lets the other side see what it has missed.
  std::string heartbeat();
  // Gives `take` each frame that is due, or a heartbeat when nothing was taken for kHeartbeatEvery.
  // Stops when `take` answers false: that frame is due again.
  template <class Take>
  void flush(Time now, Take take) {
    const auto is_taken = [&](std::string frame) {
      if (!take(std::move(frame))) return refused(), false;
      last_taken_ = now;
      return true;
    };
    for (std::string frame = next_frame(); !frame.empty(); frame = next_frame()) {
      if (!is_taken(std::move(frame))) return;
    }
    if (now - last_taken_ >= kHeartbeatEvery) is_taken(heartbeat());
  }
  std::size_t unacknowledged_bytes() const { return unacknowledged_bytes_; }

  // ---- Receiving
  // A place in what the other side has sent, in that life of it.
  struct Position {
    std::uint64_t life = 0;
    std::uint64_t sequence = 0;
  };
  // The fresh messages of one frame, in order, which are within it. Throws Error (kProtocol) when
  // it is malformed; nothing of it counts as received then.
  std::vector<std::string_view> receive(std::string_view frame);
  // Everything received so far may be acknowledged by the next frame.
  void acknowledge() { acknowledged_to_send_ = received_; }
  // Everything received up to there may; a position in an earlier life of the other side has no
  // effect.
  void acknowledge(Position through);
  Position received() const { return {peer_epoch_, received_}; }  // the newest message
  // The number of messages of that life of the other side that former lives of this side have
  // acknowledged.
  std::uint64_t received_before() const { return received_before_; }
  bool owes_acknowledgement() const { return acknowledged_to_send_ != acknowledged_sent_; }
  std::uint64_t peer_epoch() const { return peer_epoch_; }
  // Whether the last frame was a sign that the two sides have each other: it came from no former
  // life of the other side and was not meant for a later life of this one. Two sides that took
  // other frames for such a sign would hold each other for ever, and never say a word.
  bool is_in_touch() const { return is_in_touch_; }

  // A heartbeat is due after this long with nothing else to say.
  static constexpr Time kHeartbeatEvery = std::chrono::seconds(1);
  static constexpr std::size_t kMaxFramePayload = 1u << 20;

 private:
  struct Kept {
    std::uint64_t sequence;
    std::string message;
  };
  void meet(std::uint64_t epoch);
  void drop_acknowledged(std::uint64_t acknowledged);
  void look_for_gap(std::uint64_t round, std::uint64_t first, std::size_t count);
  std::string frame(std::size_t first, std::size_t last);

  std::uint64_t epoch_;
  std::uint64_t next_sequence_ = 1;
  std::deque<Kept> kept_;        // not acknowledged, oldest first
  std::size_t sent_ = 0;         // of kept_, how many were sent in this round
  std::size_t sent_before_ = 0;  // the last frame: to be sent again if it is refused
  std::uint64_t offered_ = 0;    // the highest sequence that was ever sent
  std::uint64_t sent_to_former_ = 0;  // lives of the other side, which acknowledged it
  std::uint64_t round_ = 1;      // of offering what is kept
  std::size_t unacknowledged_bytes_ = 0;
  Time last_taken_{};

  bool is_in_touch_ = false;
  std::uint64_t peer_epoch_ = 0;
  std::uint64_t received_ = 0;  // highest sequence, without gaps
  std::uint64_t received_before_ = 0;
  std::uint64_t acknowledged_to_send_ = 0;
  std::uint64_t acknowledged_sent_ = 0;
  std::uint64_t missing_in_ = 0;  // the other side's round that shows a gap; 0: there is none
};

}  // namespace tune
