#include "trainables/shared_memory/rank_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "core/error.h"

namespace tune::shared_memory {

struct Slot {
  alignas(kLine) std::atomic<std::uint32_t> bell;  // counts
  std::atomic<std::uint32_t> sleepers;             // threads
  alignas(kLine) std::atomic<std::uint32_t> way;   // 0: not here yet
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> alone;
  std::atomic<std::int32_t> pid;
};

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHeader = kPage;
constexpr std::size_t kMostRing = 512u << 10;
constexpr std::size_t kLeastRing = 64u << 10;
constexpr std::size_t kRingsOfRank = 4u << 20;  // those to all other ranks together
constexpr std::size_t kMessageShare = 4;        // a message's ring is a quarter of the other

// Zero, as the memory begins.
struct Header {
  std::atomic<std::uint32_t> regions;
  std::atomic<std::uint64_t> heap_end;  // 0: no block was allocated yet
};

[[noreturn]] void refuse(const char* doing) {
  throw Error(ErrorCode::kProcess, std::string("shared memory of the ranks of this host: ") +
                                       doing + ": " + std::strerror(errno));
}

// Where everything lies in a region of `size` ranks.
struct Layout {
  explicit Layout(int ranks) : size(static_cast<std::size_t>(ranks)) {
    const std::size_t others = std::max<std::size_t>(size - 1, 1);
    ring = std::clamp(kRingsOfRank / others, kLeastRing, kMostRing);
    message_ring = ring / kMessageShare;
  }

  std::size_t pairs() const { return size * size; }
  std::size_t controls() const { return size * sizeof(Slot); }
  std::size_t data() const {
    return (controls() + 2 * pairs() * sizeof(RingControl) + kPage - 1) / kPage * kPage;
  }
  std::size_t bytes() const { return data() + pairs() * (ring + message_ring); }
  std::size_t pair(int from, int to) const {
    return static_cast<std::size_t>(from) * size + static_cast<std::size_t>(to);
  }
  std::size_t control(std::size_t pair, bool message) const {
    return controls() + (2 * pair + (message ? 1 : 0)) * sizeof(RingControl);
  }
  std::size_t data(std::size_t pair, bool message) const {
    return data() + pair * (ring + message_ring) + (message ? ring : 0);
  }
  off_t start(std::uint32_t region) const { return static_cast<off_t>(kHeader + region * bytes()); }

  std::size_t size, ring, message_ring;
};

int open_process(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

char* map(int memory, off_t start, std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, start);
  if (at == MAP_FAILED) refuse("mapping it");
  ::madvise(at, bytes, MADV_DONTFORK);  // a program that a rank forks is not a rank
  return static_cast<char*>(at);
}

Header& header_at(char* base) {
  return *reinterpret_cast<Header*>(base);
}

}  // namespace

// ---- A region -----------------------------------------------------------------------------------

RankMemory::RankMemory(std::shared_ptr<Segment> segment, std::uint32_t region)
    : segment_(std::move(segment)), rings_(static_cast<std::size_t>(segment_->size())) {
  process_ = ::getpid();
  const Layout layout(size());
  bytes_ = layout.bytes();
  capacity_ = layout.ring;
  base_ = map(segment_->memory_.get(), layout.start(region), bytes_);
  const auto control = [&](std::size_t pair, bool message) {
    return reinterpret_cast<RingControl*>(base_ + layout.control(pair, message));
  };
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    const std::size_t to = layout.pair(rank(), other), from = layout.pair(other, rank());
    rings_[index(other)] = {
        {control(to, false), base_ + layout.data(to, false), layout.ring},
        {control(to, true), base_ + layout.data(to, true), layout.message_ring},
        {control(from, false), base_ + layout.data(from, false), layout.ring},
        {control(from, true), base_ + layout.data(from, true), layout.message_ring}};
  }
}

RankMemory::~RankMemory() {
  if (::getpid() != process_) return;  // a copy in a process that this rank has forked
  leave();
  ::munmap(base_, bytes_);
}

int RankMemory::rank() const {
  return segment_->rank();
}
int RankMemory::size() const {
  return segment_->size();
}

Slot& RankMemory::slot(int rank) const {
  return reinterpret_cast<Slot*>(base_)[index(rank)];
}

void RankMemory::arrive(Way way) {
  slot(rank()).pid = ::getpid();
  slot(rank()).way = static_cast<std::uint32_t>(way);
  ring_all();
}

Way RankMemory::way_of(int rank) const {
  return static_cast<Way>(slot(rank).way.load());
}

bool RankMemory::are_all_here() const {
  for (int other = 0; other < size(); ++other) {
    if (way_of(other) == Way::kNone) return false;
  }
  return true;
}

bool RankMemory::await_all_here(std::chrono::milliseconds longest) {
  const auto until = std::chrono::steady_clock::now() + longest;
  while (!are_all_here()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) return false;
    const std::uint32_t prepared = prepare_sleep();
    if (!are_all_here()) {
      sleep(prepared, std::chrono::duration_cast<std::chrono::microseconds>(until - now));
    }
    wake();
  }
  return true;
}

void RankMemory::leave() {
  if (std::exchange(has_left_, true)) return;
  slot(rank()).left = 1;
  ring_all();
}

bool RankMemory::has_left(int rank) const {
  return slot(rank).left != 0;
}

void RankMemory::say_alone(bool alone) {
  slot(rank()).alone = alone ? 1 : 0;
}

bool RankMemory::is_any_alone() const {
  for (int other = 0; other < size(); ++other) {
    if (slot(other).alone != 0) return true;
  }
  return false;
}

// The bell is rung for those that sleep alone: a rank that is awake looks for itself. The fence and
// the one in prepare_sleep() see to it that either this sees the sleeper or it sees the change.
void RankMemory::ring_bell(Slot& slot) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (slot.sleepers.load(std::memory_order_relaxed) == 0) return;
  slot.bell.fetch_add(1);
  ::syscall(SYS_futex, &slot.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void RankMemory::ring(int rank) {
  changes_.store(changes() + 1, std::memory_order_relaxed);
  ring_bell(slot(rank));
}

void RankMemory::ring_own() {
  ring_bell(slot(rank()));
}

void RankMemory::ring_all() {
  for (int other = 0; other < size(); ++other) ring_bell(slot(other));
}

std::uint32_t RankMemory::prepare_sleep() {
  Slot& own = slot(rank());
  own.sleepers.fetch_add(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return own.bell.load();
}

void RankMemory::sleep(std::uint32_t prepared, std::chrono::microseconds longest) {
  const timespec time{longest.count() / 1'000'000, longest.count() % 1'000'000 * 1000};
  ::syscall(SYS_futex, &slot(rank()).bell, FUTEX_WAIT, prepared, &time, nullptr, 0);
}

void RankMemory::wake() {
  slot(rank()).sleepers.fetch_sub(1);
}

// ---- The segment --------------------------------------------------------------------------------

Segment::Segment(FileDescriptor memory, int rank, int size)
    : memory_(std::move(memory)),
      rank_(rank),
      size_(size),
      process_(::getpid()),
      pids_(static_cast<std::size_t>(size)) {
  const FileDescriptor process(open_process(::getpid()));
  if (!process.is_open()) refuse("pidfd_open");
  // A number that a program inherited with the environment alone may be that of any file, which
  // must not be written to.
  if (::fcntl(memory_.get(), F_GET_SEALS) != 0) refuse("it is not such memory");
  const Layout layout(size);
  grow(static_cast<std::size_t>(layout.start(1)));
  header_ = map(memory_.get(), 0, kHeader);
  std::uint32_t none = 0;
  header_at(header_).regions.compare_exchange_strong(none, 1);  // that of the first group
  heap_ = std::make_shared<Heap>(FileDescriptor(::fcntl(memory_.get(), F_DUPFD_CLOEXEC, 0)));
}

Segment::~Segment() {
  if (::getpid() == process_) ::munmap(header_, kHeader);
}

// By its last page: to set the size could cut away what another rank has grown it by meanwhile.
void Segment::grow(std::size_t bytes) {
  struct stat now {};
  if (::fstat(memory_.get(), &now) != 0) refuse("fstat");
  if (static_cast<std::size_t>(now.st_size) >= bytes) return;
  if (!file_may_have(bytes)) {
    errno = EFBIG;
    refuse("the limit for files (ulimit -f)");
  }
  const auto last = static_cast<off_t>(bytes - kPage);
  if (::fallocate(memory_.get(), 0, last, kPage) != 0) refuse("fallocate");
}

std::shared_ptr<char> Segment::allocate(std::size_t bytes) {
  return heap_->allocate(bytes, header_at(header_).heap_end);
}

bool Segment::is_free(std::uint32_t region) {
  const Layout layout(size_);
  char* base = map(memory_.get(), layout.start(region), layout.controls());
  const auto* slots = reinterpret_cast<const Slot*>(base);
  const bool is_free =
      std::all_of(slots, slots + size_, [](const Slot& slot) { return slot.left != 0; });
  ::munmap(base, layout.controls());
  return is_free;
}

void Segment::reset(std::uint32_t region) {
  const Layout layout(size_);
  char* base = map(memory_.get(), layout.start(region), layout.data());
  std::memset(base, 0, layout.data());
  ::munmap(base, layout.data());
}

std::uint32_t Segment::take_region() {
  auto& regions = header_at(header_).regions;
  for (std::uint32_t region = 0; region < regions; ++region) {
    if (!is_free(region)) continue;
    reset(region);
    return region;
  }
  const std::uint32_t region = regions;
  grow(static_cast<std::size_t>(Layout(size_).start(region + 1)));
  regions = region + 1;
  return region;
}

void Segment::watch(const RankMemory& first) {
  processes_.clear();
  for (int rank = 0; rank < size_; ++rank) {
    const pid_t pid = first.slot(rank).pid;
    pids_[static_cast<std::size_t>(rank)] = pid;
    processes_.emplace_back(rank == rank_ ? -1 : open_process(pid));
  }
}

std::vector<bool> Segment::ended() const {
  std::vector<bool> ended(processes_.size());
  std::vector<pollfd> watched;
  for (const FileDescriptor& process : processes_) watched.push_back({process.get(), POLLIN, 0});
  if (::poll(watched.data(), watched.size(), 0) < 0) return ended;
  for (std::size_t rank = 0; rank < watched.size(); ++rank) {
    const bool is_own = static_cast<int>(rank) == rank_;
    // One that could not be opened had ended before.
    ended[rank] = !is_own && (watched[rank].fd < 0 || watched[rank].revents != 0);
  }
  return ended;
}

}  // namespace tune::shared_memory
