#include "core/link.h"

#include <algorithm>

#include "core/error.h"
#include "core/wire.h"

namespace tune {

namespace {

constexpr std::uint64_t kSayAgain = ~std::uint64_t{0};  // no acknowledgement counts as sent

}  // namespace

void Link::send(std::string message) {
  unacknowledged_bytes_ += message.size();
  kept_.push_back({next_sequence_++, std::move(message)});
}

std::vector<std::string> Link::frames(Time now) {
  const bool overdue = sent_ > 0 && !progressed_ && now - last_progress_ >= kResendAfter;
  if (resend_all_ || overdue) sent_ = 0;
  if (sent_ == 0 || progressed_) last_progress_ = now;
  resend_all_ = progressed_ = false;
  std::vector<std::string> due;
  while (sent_ < kept_.size()) {
    const std::size_t first = sent_;
    std::size_t bytes = 0;
    do bytes += kept_[sent_++].message.size();
    while (sent_ < kept_.size() && bytes + kept_[sent_].message.size() <= kMaxFramePayload);
    due.push_back(frame(first, sent_));
  }
  if (due.empty() && owes_acknowledgement()) due.push_back(frame(0, 0));
  if (!due.empty()) acknowledged_sent_ = acknowledged_to_send_;
  return due;
}

std::string Link::heartbeat() {
  acknowledged_sent_ = acknowledged_to_send_;
  return frame(0, 0);
}

// [epoch, peer's epoch, acknowledged, first sequence, [message, ...]]
std::string Link::frame(std::size_t first, std::size_t last) {
  PackWriter out;
  out.array(5);
  out.unsigned_integer(epoch_);
  out.unsigned_integer(peer_epoch_);
  out.unsigned_integer(acknowledged_to_send_);
  out.unsigned_integer(first < last ? kept_[first].sequence : 0);
  out.array(last - first);
  for (std::size_t i = first; i < last; ++i) out.binary(kept_[i].message);
  return out.take();
}

std::vector<std::string> Link::receive(std::string_view frame) {
  PackReader in(frame);
  if (const std::size_t size = in.array(); size != 5) detail::bad_message("frame", size, 5);
  const std::uint64_t epoch = in.unsigned_integer();
  const std::uint64_t addressed_to = in.unsigned_integer();
  const std::uint64_t acknowledged = in.unsigned_integer();
  const std::uint64_t first = in.unsigned_integer();
  const std::size_t count = in.array();
  std::vector<std::string_view> messages;
  for (std::size_t i = 0; i < count; ++i) messages.push_back(in.binary());
  in.expect_end();

  if (epoch < peer_epoch_) return {};
  if (epoch > peer_epoch_) meet(epoch);
  if (addressed_to == epoch_) drop_acknowledged(acknowledged);
  const bool is_for_us = addressed_to == epoch_ || addressed_to == 0;
  std::vector<std::string> fresh;
  for (std::size_t i = 0; i < count && is_for_us; ++i) {
    if (first + i != received_ + 1) continue;  // seen before, or after a gap that comes again
    ++received_;
    fresh.emplace_back(messages[i]);
  }
  // What was seen before was acknowledged in a frame that got lost, or the other side knows a
  // former life of this one: say who this is and what was received.
  if (count > 0 && fresh.empty()) acknowledged_sent_ = kSayAgain;
  return fresh;
}

void Link::acknowledge(Position through) {
  if (through.life != peer_epoch_) return;
  TUNE_CHECK(through.sequence <= received_);
  acknowledged_to_send_ = std::max(acknowledged_to_send_, through.sequence);
}

void Link::meet(std::uint64_t epoch) {
  const bool is_another_life = peer_epoch_ != 0;
  peer_epoch_ = epoch;
  received_ = acknowledged_to_send_ = acknowledged_sent_ = 0;
  if (!is_another_life) return;
  next_sequence_ = 1;
  for (Kept& kept : kept_) kept.sequence = next_sequence_++;
  sent_ = 0;
}

void Link::drop_acknowledged(std::uint64_t acknowledged) {
  while (sent_ > 0 && kept_.front().sequence <= acknowledged) {
    unacknowledged_bytes_ -= kept_.front().message.size();
    kept_.pop_front();
    --sent_;
    progressed_ = true;
  }
}

}  // namespace tune
