// Reading a file of lines that another process appends to, and may cut and write anew (a resume
// does both). Nothing is held open between two reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace tune {

// The part of a file that was read so far.
struct TailSeen {
  std::uint64_t offset = 0;   // after the last whole line that was visited
  std::uint64_t size = 0;     // of the file at that time,
  std::int64_t changed = -1;  // and when it had changed, in nanoseconds; -1: never looked at
  std::uint64_t mark = 0;     // hash of the bytes before `offset`
  bool more = false;          // the budget left lines unread
};

enum class TailNews { kNone, kLines, kBegunAnew };

struct TailVisitor {
  std::function<void()> begun_anew;  // the lines visited so far do not count any more
  std::function<void(std::string_view line)> line;
};

inline constexpr std::size_t kMaxLineBytes = 16u << 20;

// Visits the lines that came since, at most about `budget` bytes of them; a last line without its
// end is visited when it has one. A missing file has no lines. Comparing sizes alone would take a
// file that was cut and has grown beyond the former size for one that has only grown: the bytes
// before the offset are compared, too.
// Throws Error (kIo) when an existing file cannot be read, Error (kBadInput) for a line longer
// than kMaxLineBytes.
TailNews read_tail(const std::filesystem::path& file, TailSeen& seen, const TailVisitor& visit,
                   std::size_t budget = SIZE_MAX);

}  // namespace tune
