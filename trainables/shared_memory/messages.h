// Sends and receives between two ranks, beside the collectives: each message has a tag, and a
// receive takes the oldest message of its tag. A send has ended when its receiver has the message,
// as by Gloo: one that nobody wants is an error, and not lost without a word. A message that nobody
// waits for stays with its sender until its receiver waits for one behind it: it is then kept in
// the receiver's own memory.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "trainables/shared_memory/motions.h"

namespace tune::shared_memory {

inline constexpr int kAnyRank = -1;

class Messages {
 public:
  explicit Messages(RankMemory& memory);

  // The memory must stay until the motion has ended or is destroyed. One that is destroyed before
  // it has ended breaks its direction for all later ones where a part of it has gone already.
  std::unique_ptr<Motion> send(int to, std::int64_t tag, const char* bytes, std::size_t size);
  // `source`, if any, gets the rank that sent it.
  std::unique_ptr<Motion> receive(int from, std::int64_t tag, char* bytes, std::size_t size,
                                  int* source);

 private:
  struct Head {
    std::int64_t tag = 0;
    std::uint64_t bytes = 0;
    std::uint64_t reserved[6] = {};
  };
  static_assert(sizeof(Head) == kLine);
  struct Wanted {
    int from;
    std::int64_t tag;
    char* bytes;
    std::size_t size;
    int source = kAnyRank;  // where it came from
    std::size_t came = 0;   // the message's size
    bool is_begun = false, has_ended = false;
  };
  struct Kept {
    std::int64_t tag;
    std::vector<char> bytes;
  };
  // The messages that come from one rank.
  struct Inbox {
    bool is_in_message = false;
    bool is_kept = false;  // the present one, and those before it
    Head head;
    std::size_t done = 0;
    Wanted* wanted = nullptr;  // whose the present one is; null: kept, or passed over
    std::deque<Kept> kept;
  };
  struct Outbox {
    std::uint64_t next = 0;  // ticket
    std::uint64_t served = 0;
    bool is_broken = false;
  };
  class Send;
  class Receive;

  void advance(int from);
  bool begin(int from, Inbox& inbox);
  void end(int from, Inbox& inbox);
  void hand_over_kept(int from);
  Wanted* first_wanted(int from, std::int64_t tag);
  bool is_wanted(int from) const;
  void forget(Wanted* wanted);

  RankMemory& memory_;
  std::vector<Inbox> inboxes_;
  std::vector<Outbox> outboxes_;
  std::list<Wanted*> wanted_;  // in the order in which they were asked for
};

}  // namespace tune::shared_memory
