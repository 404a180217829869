#include "core/link.h"

#include <algorithm>
#include <utility>

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

std::string Link::next_frame() {
  if (sent_ == kept_.size()) return owes_acknowledgement() ? heartbeat() : std::string();
  const std::size_t first = sent_;
  std::size_t last = first;
  std::size_t bytes = 0;
  do bytes += kept_[last++].message.size();
  while (last < kept_.size() && bytes + kept_[last].message.size() <= kMaxFramePayload);
  std::string made = frame(first, last);
  sent_before_ = first;
  sent_ = last;
  offered_ = std::max(offered_, kept_[last - 1].sequence);
  return made;
}

void Link::refused() {
  sent_ = sent_before_;
  acknowledged_sent_ = kSayAgain;
}

std::vector<std::string> Link::frames() {
  std::vector<std::string> due;
  for (std::string one = next_frame(); !one.empty(); one = next_frame()) {
    due.push_back(std::move(one));
  }
  return due;
}

std::string Link::heartbeat() {
  sent_before_ = sent_;
  return frame(sent_, sent_);
}

// [epoch, peer's epoch, acknowledged, round, round that lacks something, next sequence, messages that
// its former lives have acknowledged, [message]]
std::string Link::frame(std::size_t first, std::size_t last) {
  acknowledged_sent_ = acknowledged_to_send_;
  PackWriter out;
  out.array(8);
  out.unsigned_integer(epoch_);
  out.unsigned_integer(peer_epoch_);
  out.unsigned_integer(acknowledged_to_send_);
  out.unsigned_integer(round_);
  out.unsigned_integer(missing_in_);
  out.unsigned_integer(first < kept_.size() ? kept_[first].sequence : next_sequence_);
  out.unsigned_integer(sent_to_former_);
  out.array(last - first);
  for (std::size_t i = first; i < last; ++i) out.binary(kept_[i].message);
  return out.take();
}

std::vector<std::string_view> Link::receive(std::string_view frame) {
  is_in_touch_ = false;
  PackReader in(frame);
  if (const std::size_t size = in.array(); size != 8) detail::bad_message("frame", size, 8);
  const std::uint64_t epoch = in.unsigned_integer();
  const std::uint64_t addressed_to = in.unsigned_integer();
  const std::uint64_t acknowledged = in.unsigned_integer();
  const std::uint64_t round = in.unsigned_integer();
  const std::uint64_t asks_about = in.unsigned_integer();
  const std::uint64_t first = in.unsigned_integer();
  const std::uint64_t before = in.unsigned_integer();
  const std::size_t count = in.array();
  std::vector<std::string_view> messages;
  for (std::size_t i = 0; i < count; ++i) messages.push_back(in.binary());
  in.expect_end();

  is_in_touch_ = epoch >= peer_epoch_ && addressed_to <= epoch_;
  if (epoch < peer_epoch_) return {};
  if (epoch > peer_epoch_) meet(epoch);
  if (addressed_to == epoch_) {
    drop_acknowledged(acknowledged);
    if (asks_about == round_) {
      sent_ = 0;
      ++round_;
    }
  }
  const bool is_for_us = addressed_to == epoch_ || addressed_to == 0;
  if (is_for_us) received_before_ = before;
  std::size_t fresh = 0;
  for (std::size_t i = 0; i < count && is_for_us; ++i) {
    if (first + i != received_ + 1) continue;  // seen before, or after a gap that comes again
    ++received_;
    messages[fresh++] = messages[i];
  }
  messages.resize(fresh);
  // These messages were seen before: their acknowledgement was lost, or the other side knows a
  // former life of this one. Say who this is and what was received.
  if (count > 0 && fresh == 0) acknowledged_sent_ = kSayAgain;
  if (is_for_us) look_for_gap(round, first, count);
  return messages;
}

void Link::acknowledge(Position through) {
  if (through.life != peer_epoch_) return;
  TUNE_CHECK(through.sequence <= received_);
  acknowledged_to_send_ = std::max(acknowledged_to_send_, through.sequence);
}

// Frames of an earlier round may still be under way when those of the next fill its gap.
void Link::look_for_gap(std::uint64_t round, std::uint64_t first, std::size_t count) {
  if (round < missing_in_) return;
  const bool lacks = first + count > received_ + 1;
  if (lacks && round != missing_in_) acknowledged_sent_ = kSayAgain;  // ask at once
  missing_in_ = lacks ? round : 0;
}

void Link::meet(std::uint64_t epoch) {
  const bool is_another_life = peer_epoch_ != 0;
  peer_epoch_ = epoch;
  received_ = acknowledged_to_send_ = acknowledged_sent_ = missing_in_ = 0;
  if (!is_another_life) return;
  sent_to_former_ += next_sequence_ - 1 - kept_.size();
  next_sequence_ = 1;
  for (Kept& kept : kept_) kept.sequence = next_sequence_++;
  sent_ = sent_before_ = 0;
  offered_ = 0;
}

void Link::drop_acknowledged(std::uint64_t acknowledged) {
  acknowledged = std::min(acknowledged, offered_);
  while (!kept_.empty() && kept_.front().sequence <= acknowledged) {
    unacknowledged_bytes_ -= kept_.front().message.size();
    kept_.pop_front();
    if (sent_ > 0) --sent_;
  }
}

}  // namespace tune
