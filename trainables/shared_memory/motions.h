// Collectives as steps that never block: each is asked to go on as far as it can now,
// until it says that it has ended.
//
// All ranks begin the same motions in the same order. Each message begins with a line that says of
// which call it is, so that ranks that call different things are told so, and nobody takes one
// thing for another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainables/shared_memory/rank_memory.h"
#include "trainables/shared_memory/reduction.h"

namespace tune::shared_memory {

class Motion {
 public:
  virtual ~Motion() = default;
  // Whether it has ended; throws Failure.
  virtual bool advance() = 0;
  // The ranks that it waits for.
  virtual std::vector<int> awaited() = 0;
};

enum class CallKind : std::uint8_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kGather,
  kScatter,
  kReduceScatter,
  kAllToAll,
  kBarrier,
  kSparse
};

// The first line of each message of a collective.
struct Call {
  std::uint64_t number = 0;  // of the group's calls
  std::uint64_t bytes = 0;   // of the message
  CallKind kind = CallKind::kBarrier;
  Operator reduction = Operator::kSum;
  std::uint8_t type = 0;  // of the values, as the caller numbers them
  std::int32_t root = 0;
  HeapPlace place = {};  // of the caller's tensor, which others may read and write there
  std::int32_t reserved[4] = {};
};
static_assert(sizeof(Call) == kLine);
std::string describe(const Call& call);

struct Out {
  int rank;
  const char* bytes;
  std::size_t size;
};
struct In {
  int rank;
  char* bytes;
  std::size_t size;
};

// Sends and receives at once, one message a rank at most each way.
class Exchange : public Motion {
 public:
  Exchange(RankMemory& memory, const Call& call, std::vector<Out> out, std::vector<In> in);
  bool advance() override;
  std::vector<int> awaited() override;

 private:
  struct Sending {
    Out rest;
    bool has_begun = false, has_ended = false;
  };
  struct Receiving {
    In rest;
    bool has_begun = false, has_ended = false;
  };
  bool send(Sending& one);
  bool receive(Receiving& one);

  RankMemory& memory_;
  Call call_;
  std::vector<Sending> out_;
  std::vector<Receiving> in_;
};

// The values of this rank and those that others send, reduced in the order of the ranks. `own` may
// be `to`. The messages that go out besides must not lie in `to`.
class ReduceInto : public Motion {
 public:
  struct Values {
    Operator reduction;
    Type type;
    const char* own;
    char* to;
    std::size_t bytes;
  };
  ReduceInto(RankMemory& memory, const Call& call, const Values& values, std::vector<Out> out);
  bool advance() override;
  std::vector<int> awaited() override;

 private:
  RankMemory& memory_;
  Call call_;
  Values values_;
  Exchange sending_;
  std::vector<bool> has_begun_;
  std::size_t done_ = 0;
  std::vector<const char*> parts_;
};

// A large tensor, in place: each rank reduces a slice of each block and gives the result to all
// others, so that every value crosses the memory twice whatever the number of ranks. A rank is at
// most one block ahead of the others, for which the rings have room.
class AllReduceBlocks : public Motion {
 public:
  // `has_met`: the first lines have gone both ways.
  AllReduceBlocks(RankMemory& memory, const Call& call, Operator reduction, Type type, char* data,
                  std::size_t bytes, bool has_met = false);
  bool advance() override;
  std::vector<int> awaited() override;

 private:
  struct Slice {
    std::size_t begin, size;
  };
  struct Progress {
    std::size_t done = 0;
    bool has_begun = false;  // the first line is written or read
  };
  enum class Phase { kGive, kReduce, kTake };
  Slice slice(std::size_t block, int rank) const;
  bool give(std::size_t block);
  bool reduce();
  bool take();
  void start(Phase phase);
  void begin_stretch();
  void end_stretch();

  RankMemory& memory_;
  Call call_;
  Operator reduction_;
  Type type_;
  char* data_;
  std::size_t bytes_;
  std::size_t slice_bytes_;
  std::size_t blocks_;
  std::size_t block_ = 0;  // that is reduced
  std::size_t given_ = 0;  // the next that is given
  std::size_t stretch_ = 0;  // the first block of what is timed
  bool is_timed_ = false, has_begun_ = false;
  Phase phase_ = Phase::kGive;
  std::vector<bool> sent_line_, read_line_;
  std::vector<std::size_t> done_;  // of the phase, by rank
  std::vector<const char*> parts_;
};

// A large tensor that lies in the heaps of all ranks: each rank reduces its slice where the values
// are, and writes the result there. So each value crosses the memory once, and nothing is copied.
// The ranks say at their first lines where their tensors are; if one of them is in no heap, all go
// on as AllReduceBlocks. A second line says that a rank's slice is done.
class AllReduceInPlace : public Motion {
 public:
  // `call` has the place of `data`.
  AllReduceInPlace(RankMemory& memory, const Call& call, Operator reduction, Type type, char* data,
                   std::size_t bytes);
  bool advance() override;
  std::vector<int> awaited() override;

 private:
  bool exchange_lines();
  void reduce_slice();

  RankMemory& memory_;
  Call call_;
  Operator reduction_;
  Type type_;
  char* data_;
  std::size_t bytes_;
  bool has_met_ = false;
  std::vector<bool> sent_line_, read_line_;  // the first, then the second
  std::vector<HeapPlace> places_;            // by rank
  std::unique_ptr<AllReduceBlocks> blocks_;  // when there is no place
};

// Large data from `root` to all: each rank passes on what it gets, so that the first does not have
// to write it once for each.
class Relay : public Motion {
 public:
  Relay(RankMemory& memory, const Call& call, char* data, std::size_t bytes);
  bool advance() override;
  std::vector<int> awaited() override;

 private:
  RankMemory& memory_;
  Call call_;
  char* data_;
  std::size_t bytes_;
  int from_, to_;  // -1: none
  bool has_read_line_, has_sent_line_;
  std::size_t got_, given_ = 0;
};

// One after the other; a part is made when its turn comes.
class Sequence : public Motion {
 public:
  using Make = std::function<std::unique_ptr<Motion>()>;
  explicit Sequence(std::vector<Make> parts) : parts_(std::move(parts)) {}
  bool advance() override;
  std::vector<int> awaited() override;

 private:
  std::vector<Make> parts_;
  std::size_t next_ = 0;
  std::unique_ptr<Motion> present_;
};

std::unique_ptr<Motion> all_reduce(RankMemory& memory, const Call& call, Operator reduction,
                                   Type type, char* data, std::size_t bytes);
std::unique_ptr<Motion> broadcast(RankMemory& memory, const Call& call, char* data,
                                  std::size_t bytes);

}  // namespace tune::shared_memory
