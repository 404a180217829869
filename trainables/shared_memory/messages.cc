#include "trainables/shared_memory/messages.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "trainables/shared_memory/failure.h"

namespace tune::shared_memory {
namespace {

std::size_t place(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

class Messages::Send : public Motion {
 public:
  Send(Messages& messages, int to, const Head& head, const char* bytes)
      : messages_(messages),
        to_(to),
        ticket_(messages.outboxes_[place(to)].next++),
        head_(head),
        bytes_(bytes) {}
  ~Send() override {
    Outbox& outbox = messages_.outboxes_[place(to_)];
    if (is_given_) return;
    if (has_begun_ || outbox.served != ticket_) {
      outbox.is_broken = true;
    } else {
      ++outbox.served;
    }
  }

  bool advance() override {
    Outbox& outbox = messages_.outboxes_[place(to_)];
    RingSender& ring = messages_.memory_.message_out(to_);
    if (is_given_) return ring.has_been_read(end_);
    if (outbox.is_broken) {
      throw Failure(FailureKind::kAborted,
                    "an earlier message to rank " + std::to_string(to_) + " was given up");
    }
    if (outbox.served != ticket_) return false;
    if (!has_begun_) {
      if (ring.room() < sizeof(Head)) return false;
      ring.put(reinterpret_cast<const char*>(&head_), sizeof head_);
      has_begun_ = true;
    }
    while (done_ < head_.bytes) {
      const std::size_t size = ring.put(bytes_ + done_, head_.bytes - done_);
      done_ += size;
      if (ring.publish()) messages_.memory_.ring(to_);
      if (size == 0) return false;
    }
    if (ring.publish()) messages_.memory_.ring(to_);
    ++outbox.served;
    is_given_ = true;
    end_ = ring.end();
    return ring.has_been_read(end_);
  }
  std::vector<int> awaited() override { return {to_}; }

 private:
  Messages& messages_;
  int to_;
  std::uint64_t ticket_;
  Head head_;
  const char* bytes_;
  std::size_t done_ = 0;
  std::uint64_t end_ = 0;  // in the ring
  bool has_begun_ = false, is_given_ = false;
};

class Messages::Receive : public Motion {
 public:
  Receive(Messages& messages, const Wanted& wanted, int* source)
      : messages_(messages), wanted_(wanted), source_(source) {
    messages_.wanted_.push_back(&wanted_);
  }
  ~Receive() override { messages_.forget(&wanted_); }

  bool advance() override {
    for (int rank = 0; rank < messages_.memory_.size() && !wanted_.has_ended; ++rank) {
      if (rank == messages_.memory_.rank()) continue;
      if (wanted_.from == kAnyRank || wanted_.from == rank) messages_.advance(rank);
    }
    if (!wanted_.has_ended) return false;
    if (wanted_.came != wanted_.size) {
      throw Failure(FailureKind::kMessage, "rank " + std::to_string(wanted_.source) + " sent " +
                                               std::to_string(wanted_.came) +
                                               " bytes, this rank wants " +
                                               std::to_string(wanted_.size));
    }
    if (source_ != nullptr) *source_ = wanted_.source;
    return true;
  }
  std::vector<int> awaited() override {
    if (wanted_.from != kAnyRank) return {wanted_.from};
    std::vector<int> ranks;
    for (int rank = 0; rank < messages_.memory_.size(); ++rank) {
      if (rank != messages_.memory_.rank()) ranks.push_back(rank);
    }
    return ranks;
  }

 private:
  Messages& messages_;
  Wanted wanted_;
  int* source_;
};

Messages::Messages(RankMemory& memory)
    : memory_(memory), inboxes_(place(memory.size())), outboxes_(place(memory.size())) {}

std::unique_ptr<Motion> Messages::send(int to, std::int64_t tag, const char* bytes,
                                       std::size_t size) {
  return std::make_unique<Send>(*this, to, Head{.tag = tag, .bytes = size}, bytes);
}

std::unique_ptr<Motion> Messages::receive(int from, std::int64_t tag, char* bytes, std::size_t size,
                                          int* source) {
  return std::make_unique<Receive>(
      *this, Wanted{.from = from, .tag = tag, .bytes = bytes, .size = size}, source);
}

Messages::Wanted* Messages::first_wanted(int from, std::int64_t tag) {
  const auto fits = [&](const Wanted* one) {
    return !one->is_begun && one->tag == tag && (one->from == from || one->from == kAnyRank);
  };
  const auto found = std::ranges::find_if(wanted_, fits);
  return found == wanted_.end() ? nullptr : *found;
}

bool Messages::is_wanted(int from) const {
  return std::ranges::any_of(wanted_, [&](const Wanted* one) {
    return !one->is_begun && (one->from == from || one->from == kAnyRank);
  });
}

// The rest of a message that this rank no longer wants is passed over.
void Messages::forget(Wanted* wanted) {
  wanted_.remove(wanted);
  for (Inbox& inbox : inboxes_) {
    if (inbox.wanted == wanted) inbox.wanted = nullptr;
  }
}

void Messages::hand_over_kept(int from) {
  Inbox& inbox = inboxes_[place(from)];
  const bool last_is_coming = inbox.is_in_message && inbox.is_kept;
  for (std::size_t i = 0; i < inbox.kept.size();) {
    const bool is_coming = last_is_coming && i + 1 == inbox.kept.size();
    Wanted* const wanted = is_coming ? nullptr : first_wanted(from, inbox.kept[i].tag);
    if (wanted == nullptr) {
      ++i;
      continue;
    }
    const std::vector<char> bytes = std::move(inbox.kept[i].bytes);
    inbox.kept.erase(inbox.kept.begin() + static_cast<std::ptrdiff_t>(i));
    std::memcpy(wanted->bytes, bytes.data(), std::min(bytes.size(), wanted->size));
    wanted->came = bytes.size();
    wanted->source = from;
    wanted->is_begun = wanted->has_ended = true;
  }
}

// Whether a message is coming.
bool Messages::begin(int from, Inbox& inbox) {
  if (inbox.is_in_message) return true;
  RingReceiver& ring = memory_.message_in(from);
  const auto part = ring.front(sizeof(Head));
  if (part.size < sizeof(Head)) return false;
  std::memcpy(&inbox.head, part.bytes, sizeof(Head));
  ring.take(sizeof(Head));
  inbox.done = 0;
  inbox.is_in_message = true;
  inbox.wanted = first_wanted(from, inbox.head.tag);
  inbox.is_kept = inbox.wanted == nullptr;
  if (inbox.is_kept) {
    inbox.kept.push_back({inbox.head.tag, std::vector<char>(inbox.head.bytes)});
  } else {
    inbox.wanted->is_begun = true;
    inbox.wanted->source = from;
    inbox.wanted->came = inbox.head.bytes;
  }
  return true;
}

void Messages::end(int from, Inbox& inbox) {
  inbox.is_in_message = false;
  if (inbox.wanted != nullptr) inbox.wanted->has_ended = true;
  inbox.wanted = nullptr;
  if (inbox.is_kept) hand_over_kept(from);
}

void Messages::advance(int from) {
  hand_over_kept(from);
  Inbox& inbox = inboxes_[place(from)];
  RingReceiver& ring = memory_.message_in(from);
  while ((inbox.is_in_message || is_wanted(from)) && begin(from, inbox)) {
    while (inbox.done < inbox.head.bytes) {
      const auto part = ring.front(inbox.head.bytes - inbox.done);
      if (part.size == 0) break;
      char* to = nullptr;
      std::size_t room = 0;
      if (inbox.is_kept) {
        to = inbox.kept.back().bytes.data();
        room = inbox.head.bytes;
      } else if (inbox.wanted != nullptr) {
        to = inbox.wanted->bytes;
        room = inbox.wanted->size;
      }
      if (inbox.done < room) {
        std::memcpy(to + inbox.done, part.bytes, std::min(part.size, room - inbox.done));
      }
      ring.take(part.size);
      inbox.done += part.size;
      if (ring.release()) memory_.ring(from);
    }
    if (ring.release()) memory_.ring(from);
    if (inbox.done < inbox.head.bytes) return;
    end(from, inbox);
  }
}

}  // namespace tune::shared_memory
