#include "trainables/shared_memory/motions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "trainables/shared_memory/failure.h"

namespace tune::shared_memory {
namespace {

// Data up to this size is given to each other rank whole; larger data is shared out.
constexpr std::size_t kSmall = 16u << 10;
// Of an all_reduce: what is timed together, at most, in blocks, and at least.
constexpr std::size_t kStretch = 8;
constexpr std::size_t kShortestStretch = 128u << 10;

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

const char* name_of(CallKind kind) {
  constexpr std::array names = {
      "all_reduce", "reduce",         "broadcast",  "all_gather", "gather",
      "scatter",    "reduce_scatter", "all_to_all", "barrier",    "all_reduce of sparse values"};
  return names[static_cast<std::size_t>(kind)];
}

bool put_line(RingSender& ring, const Call& call) {
  if (ring.room() < sizeof(Call)) return false;
  // A line never lies in two pieces.
  return ring.put(reinterpret_cast<const char*>(&call), sizeof call) == sizeof call;
}

// Of a message of `bytes` bytes for this rank; throws when another call's comes.
bool read_line(RingReceiver& ring, const Call& own, std::size_t bytes, int from,
               HeapPlace* place = nullptr) {
  const auto part = ring.front(sizeof(Call));
  if (part.size < sizeof(Call)) return false;
  Call call;
  std::memcpy(&call, part.bytes, sizeof call);
  Call expected = own;
  expected.bytes = bytes;
  const bool is_same = call.number == expected.number && call.kind == expected.kind &&
                       call.bytes == expected.bytes && call.type == expected.type &&
                       call.reduction == expected.reduction && call.root == expected.root;
  if (!is_same) {
    throw Failure(FailureKind::kDifferentCalls, "rank " + std::to_string(from) + " calls " +
                                                    describe(call) + ", this rank " +
                                                    describe(expected));
  }
  ring.take(sizeof(Call));
  if (place != nullptr) *place = call.place;
  return true;
}

}  // namespace

std::string describe(const Call& call) {
  std::string text = std::string(name_of(call.kind)) + " (call " + std::to_string(call.number);
  if (call.kind != CallKind::kBarrier) {
    text += ", " + std::to_string(call.bytes) + " bytes of type " + std::to_string(call.type);
  }
  return text + ", root " + std::to_string(call.root) + ", operator " +
         std::to_string(static_cast<int>(call.reduction)) + ")";
}

// ---- Exchange -----------------------------------------------------------------------------------

Exchange::Exchange(RankMemory& memory, const Call& call, std::vector<Out> out, std::vector<In> in)
    : memory_(memory), call_(call) {
  for (const Out& one : out) out_.push_back({one});
  for (const In& one : in) in_.push_back({one});
}

bool Exchange::send(Sending& one) {
  if (one.has_ended) return true;
  RingSender& ring = memory_.out(one.rest.rank);
  if (!one.has_begun) {
    Call call = call_;
    call.bytes = one.rest.size;
    if (!put_line(ring, call)) return false;
    one.has_begun = true;
  }
  while (one.rest.size > 0) {
    const Copying way =
        one.rest.size > kSmall ? memory_.copying().way() : Copying::kThroughCaches;
    const std::size_t size = ring.put(one.rest.bytes, one.rest.size, way);
    one.rest.bytes += size;
    one.rest.size -= size;
    if (ring.publish()) memory_.ring(one.rest.rank);
    if (size == 0) return false;
  }
  if (ring.publish()) memory_.ring(one.rest.rank);
  return one.has_ended = true;
}

bool Exchange::receive(Receiving& one) {
  if (one.has_ended) return true;
  RingReceiver& ring = memory_.in(one.rest.rank);
  if (!one.has_begun) {
    if (!read_line(ring, call_, one.rest.size, one.rest.rank)) return false;
    one.has_begun = true;
  }
  while (one.rest.size > 0) {
    const auto part = ring.front(one.rest.size);
    if (part.size == 0) break;
    std::memcpy(one.rest.bytes, part.bytes, part.size);
    ring.take(part.size);
    one.rest.bytes += part.size;
    one.rest.size -= part.size;
    if (ring.release()) memory_.ring(one.rest.rank);
  }
  if (ring.release()) memory_.ring(one.rest.rank);
  return one.has_ended = one.rest.size == 0;
}

bool Exchange::advance() {
  bool has_ended = true;
  for (Sending& one : out_) has_ended &= send(one);
  for (Receiving& one : in_) has_ended &= receive(one);
  return has_ended;
}

std::vector<int> Exchange::awaited() {
  std::vector<int> ranks;
  for (const Sending& one : out_) {
    if (!one.has_ended) ranks.push_back(one.rest.rank);
  }
  for (const Receiving& one : in_) {
    if (!one.has_ended && !std::ranges::count(ranks, one.rest.rank)) ranks.push_back(one.rest.rank);
  }
  return ranks;
}

// ---- ReduceInto ---------------------------------------------------------------------------------

ReduceInto::ReduceInto(RankMemory& memory, const Call& call, const Values& values,
                       std::vector<Out> out)
    : memory_(memory),
      call_(call),
      values_(values),
      sending_(memory, call, std::move(out), {}),
      has_begun_(index(memory.size())),
      parts_(index(memory.size())) {}

bool ReduceInto::advance() {
  const bool is_sent = sending_.advance();
  bool all_begun = true;
  for (int rank = 0; rank < memory_.size(); ++rank) {
    if (rank == memory_.rank() || has_begun_[index(rank)]) continue;
    has_begun_[index(rank)] = read_line(memory_.in(rank), call_, values_.bytes, rank);
    all_begun &= has_begun_[index(rank)];
  }
  while (all_begun && done_ < values_.bytes) {
    std::size_t size = values_.bytes - done_;
    for (int rank = 0; rank < memory_.size(); ++rank) {
      if (rank == memory_.rank()) {
        parts_[index(rank)] = values_.own + done_;
        continue;
      }
      const auto part = memory_.in(rank).front(values_.bytes - done_);
      parts_[index(rank)] = part.bytes;
      size = std::min(size, part.size);
    }
    if (size == 0) break;
    shared_memory::reduce(values_.reduction, values_.type, parts_, values_.to + done_, size);
    done_ += size;
    for (int rank = 0; rank < memory_.size(); ++rank) {
      if (rank == memory_.rank()) continue;
      memory_.in(rank).take(size);
      if (memory_.in(rank).release()) memory_.ring(rank);
    }
  }
  return all_begun && is_sent && done_ == values_.bytes;
}

std::vector<int> ReduceInto::awaited() {
  std::vector<int> ranks = sending_.awaited();
  RankMemory& memory = memory_;
  for (int rank = 0; rank < memory.size(); ++rank) {
    if (rank == memory.rank() || std::ranges::count(ranks, rank)) continue;
    const bool has_more = has_begun_[index(rank)] && values_.bytes > done_ &&
                          memory.in(rank).front(values_.bytes - done_).size > 0;
    const bool is_done = has_begun_[index(rank)] && values_.bytes == done_;
    if (!has_more && !is_done) ranks.push_back(rank);
  }
  return ranks;
}

// ---- AllReduceBlocks ----------------------------------------------------------------------------

// A ring holds two blocks' slices and the results of two.
AllReduceBlocks::AllReduceBlocks(RankMemory& memory, const Call& call, Operator reduction,
                                 Type type, char* data, std::size_t bytes, bool has_met)
    : memory_(memory),
      call_(call),
      reduction_(reduction),
      type_(type),
      data_(data),
      bytes_(bytes),
      slice_bytes_((memory.capacity() - 2 * kLine) / 4 / kLine * kLine),
      sent_line_(index(memory.size()), has_met),
      read_line_(index(memory.size()), has_met),
      done_(index(memory.size())),
      parts_(index(memory.size())) {
  const auto ranks = index(memory.size());
  blocks_ = (bytes + ranks * slice_bytes_ - 1) / (ranks * slice_bytes_);
}

// The last block is shared out anew.
AllReduceBlocks::Slice AllReduceBlocks::slice(std::size_t block, int rank) const {
  const auto ranks = index(memory_.size());
  const std::size_t begin = block * ranks * slice_bytes_;
  const std::size_t size = std::min(bytes_ - begin, ranks * slice_bytes_);
  const std::size_t each = whole_lines((size + ranks - 1) / ranks);
  const std::size_t first = std::min(size, index(rank) * each);
  return {begin + first, std::min(size - first, each)};
}

void AllReduceBlocks::start(Phase phase) {
  phase_ = phase;
  std::ranges::fill(done_, 0);
}

// In a ring lie slices and results of the blocks in turn: slices of the next block are given before
// the results of this one are taken, so that no rank waits for one that has only begun to reduce.
bool AllReduceBlocks::advance() {
  if (!std::exchange(has_begun_, true)) begin_stretch();
  for (;;) {
    switch (phase_) {
      case Phase::kGive:
        if (given_ < blocks_ && !give(given_)) return false;
        start(given_++ == 0 ? Phase::kReduce : Phase::kTake);
        break;
      case Phase::kReduce:
        if (!reduce()) return false;
        start(Phase::kGive);
        break;
      case Phase::kTake:
        if (!take()) return false;
        ++block_;
        end_stretch();
        if (block_ == blocks_) return true;
        start(Phase::kReduce);
        break;
    }
  }
}

void AllReduceBlocks::begin_stretch() {
  const std::size_t begin = block_ * index(memory_.size()) * slice_bytes_;
  is_timed_ = bytes_ - begin >= kShortestStretch;
  if (!is_timed_) return;
  stretch_ = block_;
  memory_.copying().begin_stretch();
}

void AllReduceBlocks::end_stretch() {
  const std::size_t block_bytes = index(memory_.size()) * slice_bytes_;
  if (!is_timed_ || (block_ < stretch_ + kStretch && block_ < blocks_)) return;
  memory_.copying().end_stretch(std::min(bytes_, block_ * block_bytes) - stretch_ * block_bytes);
  if (block_ < blocks_) begin_stretch();
}

// To each other rank what is its to reduce.
bool AllReduceBlocks::give(std::size_t block) {
  bool is_given = true;
  for (int rank = 0; rank < memory_.size(); ++rank) {
    if (rank == memory_.rank()) continue;
    RingSender& ring = memory_.out(rank);
    if (!sent_line_[index(rank)]) sent_line_[index(rank)] = put_line(ring, call_);
    const Slice slice = this->slice(block, rank);
    std::size_t& done = done_[index(rank)];
    while (sent_line_[index(rank)] && done < slice.size) {
      const std::size_t size =
          ring.put(data_ + slice.begin + done, slice.size - done, memory_.copying().way());
      done += size;
      if (ring.publish()) memory_.ring(rank);
      if (size == 0) break;
    }
    if (ring.publish()) memory_.ring(rank);
    is_given &= sent_line_[index(rank)] && done == slice.size;
  }
  return is_given;
}

// This rank's slice, of which each piece goes to all others as soon as it is reduced. The others'
// rings have room for it, since they have taken what came before (see the class).
bool AllReduceBlocks::reduce() {
  for (int rank = 0; rank < memory_.size(); ++rank) {
    if (rank == memory_.rank() || read_line_[index(rank)]) continue;
    read_line_[index(rank)] = read_line(memory_.in(rank), call_, bytes_, rank);
    if (!read_line_[index(rank)]) return false;
  }
  const Slice own = slice(block_, memory_.rank());
  std::size_t& done = done_[index(memory_.rank())];
  if (is_timed_ && block_ == 0 && done == 0) memory_.copying().all_are_here();
  while (done < own.size) {
    std::size_t size = std::min(own.size - done, kPiece);
    char* const values = data_ + own.begin + done;
    for (int rank = 0; rank < memory_.size(); ++rank) {
      if (rank == memory_.rank()) {
        parts_[index(rank)] = values;
        continue;
      }
      const auto part = memory_.in(rank).front(own.size - done);
      parts_[index(rank)] = part.bytes;
      size = std::min(size, part.size);
      if (memory_.out(rank).room() < whole_lines(size)) size = 0;
    }
    if (size == 0) return false;
    shared_memory::reduce(reduction_, type_, parts_, values, size);
    done += size;
    for (int rank = 0; rank < memory_.size(); ++rank) {
      if (rank == memory_.rank()) continue;
      memory_.in(rank).take(size);
      memory_.in(rank).release();
      for (std::size_t put = 0; put < size;) {
        put += memory_.out(rank).put(values + put, size - put, memory_.copying().way());
      }
      memory_.out(rank).publish();
      memory_.ring(rank);
    }
  }
  return true;
}

// The others' results.
bool AllReduceBlocks::take() {
  bool is_taken = true;
  for (int rank = 0; rank < memory_.size(); ++rank) {
    if (rank == memory_.rank()) continue;
    const Slice slice = this->slice(block_, rank);
    std::size_t& done = done_[index(rank)];
    RingReceiver& ring = memory_.in(rank);
    while (done < slice.size) {
      const auto part = ring.front(slice.size - done);
      if (part.size == 0) break;
      std::memcpy(data_ + slice.begin + done, part.bytes, part.size);
      ring.take(part.size);
      done += part.size;
      if (ring.release()) memory_.ring(rank);
    }
    is_taken &= done == slice.size;
  }
  return is_taken;
}

std::vector<int> AllReduceBlocks::awaited() {
  std::vector<int> ranks;
  RankMemory& memory = memory_;
  for (int rank = 0; rank < memory.size(); ++rank) {
    if (rank == memory.rank()) continue;
    bool is_awaited = false;
    if (phase_ == Phase::kGive) {
      const std::size_t block = std::min(given_, blocks_ - 1);
      is_awaited = !sent_line_[index(rank)] || done_[index(rank)] < slice(block, rank).size;
    } else if (phase_ == Phase::kTake) {
      is_awaited = done_[index(rank)] < slice(block_, rank).size;
    } else {
      const std::size_t left = slice(block_, memory.rank()).size - done_[index(memory.rank())];
      is_awaited = !read_line_[index(rank)] ||
                   (left > 0 && memory.in(rank).front(left).size == 0) ||
                   memory.out(rank).room() < kPiece;
    }
    if (is_awaited) ranks.push_back(rank);
  }
  return ranks;
}

// ---- AllReduceInPlace ---------------------------------------------------------------------------

AllReduceInPlace::AllReduceInPlace(RankMemory& memory, const Call& call, Operator reduction,
                                   Type type, char* data, std::size_t bytes)
    : memory_(memory),
      call_(call),
      reduction_(reduction),
      type_(type),
      data_(data),
      bytes_(bytes),
      sent_line_(index(memory.size())),
      read_line_(index(memory.size())),
      places_(index(memory.size())) {}

bool AllReduceInPlace::exchange_lines() {
  bool all_read = true, all_sent = true;
  for (int rank = 0; rank < memory_.size(); ++rank) {
    if (rank == memory_.rank()) continue;
    if (!sent_line_[index(rank)] && put_line(memory_.out(rank), call_)) {
      sent_line_[index(rank)] = true;
      memory_.out(rank).publish();
      memory_.ring(rank);
    }
    if (!read_line_[index(rank)]) {
      read_line_[index(rank)] =
          read_line(memory_.in(rank), call_, bytes_, rank, &places_[index(rank)]);
      if (memory_.in(rank).release()) memory_.ring(rank);
    }
    all_sent &= sent_line_[index(rank)];
    all_read &= read_line_[index(rank)];
  }
  return all_sent && all_read;
}

void AllReduceInPlace::reduce_slice() {
  const auto ranks = index(memory_.size());
  const std::size_t each = whole_lines((bytes_ + ranks - 1) / ranks);
  const std::size_t begin = std::min(bytes_, index(memory_.rank()) * each);
  const std::size_t end = std::min(bytes_, begin + each);
  std::vector<char*> all(ranks);
  for (int rank = 0; rank < memory_.size(); ++rank) {
    all[index(rank)] =
        rank == memory_.rank() ? data_ : memory_.segment()->heap().map(places_[index(rank)]);
  }
  std::vector<const char*> parts(ranks);
  for (std::size_t done = begin; done < end; done += kPiece) {
    const std::size_t size = std::min(end - done, kPiece);
    for (std::size_t rank = 0; rank < ranks; ++rank) parts[rank] = all[rank] + done;
    shared_memory::reduce(reduction_, type_, parts, data_ + done, size);
    for (char* to : all) {
      if (to != data_) std::memcpy(to + done, data_ + done, size);
    }
  }
}

bool AllReduceInPlace::advance() {
  if (blocks_) return blocks_->advance();
  if (!exchange_lines()) return false;
  if (has_met_) return true;
  has_met_ = true;
  places_[index(memory_.rank())] = call_.place;
  if (std::ranges::count(places_, 0u, &HeapPlace::block) > 0) {
    blocks_ = std::make_unique<AllReduceBlocks>(memory_, call_, reduction_, type_, data_, bytes_,
                                                true);
    return blocks_->advance();
  }
  reduce_slice();
  sent_line_.assign(sent_line_.size(), false);
  read_line_.assign(read_line_.size(), false);
  return exchange_lines();
}

std::vector<int> AllReduceInPlace::awaited() {
  if (blocks_) return blocks_->awaited();
  std::vector<int> ranks;
  for (int rank = 0; rank < memory_.size(); ++rank) {
    const bool has_gone = sent_line_[index(rank)] && read_line_[index(rank)];
    if (rank != memory_.rank() && !has_gone) ranks.push_back(rank);
  }
  return ranks;
}

// ---- Relay --------------------------------------------------------------------------------------

Relay::Relay(RankMemory& memory, const Call& call, char* data, std::size_t bytes)
    : memory_(memory), call_(call), data_(data), bytes_(bytes) {
  call_.bytes = bytes;
  const int size = memory.size();
  const int place = (memory.rank() - call.root + size) % size;  // in the chain
  from_ = place == 0 ? -1 : (memory.rank() - 1 + size) % size;
  to_ = place == size - 1 ? -1 : (memory.rank() + 1) % size;
  has_read_line_ = from_ < 0;
  has_sent_line_ = to_ < 0;
  got_ = from_ < 0 ? bytes : 0;
}

bool Relay::advance() {
  if (!has_read_line_) has_read_line_ = read_line(memory_.in(from_), call_, bytes_, from_);
  if (!has_read_line_) return false;
  for (;;) {
    std::size_t moved = 0;
    if (got_ < bytes_) {
      RingReceiver& ring = memory_.in(from_);
      const auto part = ring.front(bytes_ - got_);
      std::memcpy(data_ + got_, part.bytes, part.size);
      ring.take(part.size);
      got_ += part.size;
      moved += part.size;
      if (ring.release()) memory_.ring(from_);
    }
    if (to_ >= 0) {
      RingSender& ring = memory_.out(to_);
      if (!has_sent_line_) has_sent_line_ = put_line(ring, call_);
      if (has_sent_line_ && given_ < got_) {
        // A message's end alone may be less than a line.
        const std::size_t ready =
            got_ == bytes_ ? bytes_ - given_ : (got_ - given_) / kLine * kLine;
        const std::size_t size = ring.put(data_ + given_, ready, memory_.copying().way());
        given_ += size;
        moved += size;
      }
      if (ring.publish()) memory_.ring(to_);
    }
    const bool is_given = to_ < 0 || (has_sent_line_ && given_ == bytes_);
    if (got_ == bytes_ && is_given) return true;
    if (moved == 0) return false;
  }
}

std::vector<int> Relay::awaited() {
  if (from_ >= 0 && (!has_read_line_ || got_ < bytes_)) return {from_};
  return to_ >= 0 ? std::vector<int>{to_} : std::vector<int>{};
}

// ---- Sequence and choices -----------------------------------------------------------------------

bool Sequence::advance() {
  for (;;) {
    if (present_ && !present_->advance()) return false;
    present_.reset();
    if (next_ == parts_.size()) return true;
    present_ = parts_[next_++]();
  }
}

std::vector<int> Sequence::awaited() {
  return present_ ? present_->awaited() : std::vector<int>{};
}

std::unique_ptr<Motion> all_reduce(RankMemory& memory, const Call& given, Operator reduction,
                                   Type type, char* data, std::size_t bytes) {
  Call call = given;
  call.bytes = bytes;
  call.reduction = reduction;
  if (bytes > kSmall) {
    call.place = memory.segment()->heap().place_of(data, bytes);
    if (call.place.block == 0) {
      return std::make_unique<AllReduceBlocks>(memory, call, reduction, type, data, bytes);
    }
    return std::make_unique<AllReduceInPlace>(memory, call, reduction, type, data, bytes);
  }
  std::vector<Out> out;
  for (int rank = 0; rank < memory.size(); ++rank) {
    if (rank != memory.rank()) out.push_back({rank, data, bytes});
  }
  std::vector<Sequence::Make> parts;
  parts.push_back([&memory, call, out] {
    return std::make_unique<Exchange>(memory, call, out, std::vector<In>{});
  });
  // Not before all is sent: the result takes the place of this rank's values.
  parts.push_back([&memory, call, reduction, type, data, bytes] {
    return std::make_unique<ReduceInto>(
        memory, call, ReduceInto::Values{reduction, type, data, data, bytes}, std::vector<Out>{});
  });
  return std::make_unique<Sequence>(std::move(parts));
}

std::unique_ptr<Motion> broadcast(RankMemory& memory, const Call& given, char* data,
                                  std::size_t bytes) {
  Call call = given;
  call.bytes = bytes;
  if (bytes > kSmall) return std::make_unique<Relay>(memory, call, data, bytes);
  std::vector<Out> out;
  std::vector<In> in;
  if (memory.rank() != call.root) in.push_back({call.root, data, bytes});
  for (int rank = 0; rank < memory.size() && in.empty(); ++rank) {
    if (rank != memory.rank()) out.push_back({rank, data, bytes});
  }
  return std::make_unique<Exchange>(memory, call, std::move(out), std::move(in));
}

}  // namespace tune::shared_memory
