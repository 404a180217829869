// Link: messages that arrive once and in order over a connection that may break. Pure.
//
// Each message has (epoch, sequence). The sender keeps it until the other side has acknowledged it
// and offers it again after a reconnect or a time-out; the receiver drops what it has seen. One
// frame holds many messages, the acknowledgement of the other direction and the epoch it is meant
// for.
//
// A frame of a newer epoch than the receiver knows is from a new life of the other side: what it
// has not acknowledged is offered to it again, counted from 1. Frames of an older life are dropped,
// and so are the messages of frames that are meant for another life of the receiver.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

class Link {
 public:
  using Time = std::chrono::nanoseconds;

  // `epoch` counts the lives of this side; later lives have greater ones.
  explicit Link(std::uint64_t epoch) : epoch_(epoch) {}

  // ---- Sending
  void send(std::string message);  // queued
  // The frames that are due: what is new, and what was not acknowledged for kResendAfter. An empty
  // list: nothing to say. Each holds at most kMaxFramePayload bytes of messages (or one message).
  std::vector<std::string> frames(Time now);
  std::string heartbeat();                    // a frame without messages
  void reconnected() { resend_all_ = true; }  // everything unacknowledged is due again
  std::size_t unacknowledged_bytes() const { return unacknowledged_bytes_; }

  // ---- Receiving
  // A place in what the other side has sent, in that life of it.
  struct Position {
    std::uint64_t life = 0;
    std::uint64_t sequence = 0;
  };
  // The fresh messages of one frame, in order. Throws Error (kProtocol) when it is malformed;
  // nothing of it counts as received then.
  std::vector<std::string> receive(std::string_view frame);
  // Everything received so far may be acknowledged by the next frame.
  void acknowledge() { acknowledged_to_send_ = received_; }
  // Everything received up to there may; one in an earlier life of the other side says nothing.
  void acknowledge(Position through);
  Position received() const { return {peer_epoch_, received_}; }  // the newest message
  bool owes_acknowledgement() const { return acknowledged_to_send_ != acknowledged_sent_; }
  std::uint64_t peer_epoch() const { return peer_epoch_; }

  static constexpr Time kResendAfter = std::chrono::seconds(2);
  static constexpr std::size_t kMaxFramePayload = 1u << 20;

 private:
  struct Kept {
    std::uint64_t sequence;
    std::string message;
  };
  void meet(std::uint64_t epoch);
  void drop_acknowledged(std::uint64_t acknowledged);
  std::string frame(std::size_t first, std::size_t last);

  std::uint64_t epoch_;
  std::uint64_t next_sequence_ = 1;
  std::deque<Kept> kept_;  // not acknowledged, oldest first
  std::size_t sent_ = 0;   // of kept_, how many were sent
  std::size_t unacknowledged_bytes_ = 0;
  Time last_progress_{};     // since when the oldest sent one waits for its acknowledgement
  bool progressed_ = false;  // an acknowledgement came since the last frames()
  bool resend_all_ = false;

  std::uint64_t peer_epoch_ = 0;
  std::uint64_t received_ = 0;  // highest sequence, without gaps
  std::uint64_t acknowledged_to_send_ = 0;
  std::uint64_t acknowledged_sent_ = 0;
};

}  // namespace tune
