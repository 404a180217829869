#include "tune/results/tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/files.h"

namespace tune {

namespace {

constexpr std::size_t kTailChunkBytes = 256u << 10;
constexpr std::size_t kMarkBytes = 64;

std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return hash;
}

class Reader {
 public:
  Reader(const std::filesystem::path& file, int descriptor) : file_(file), file_of_(descriptor) {}

  // At most `wanted` bytes; fewer at the end.
  std::string_view read(std::uint64_t offset, std::size_t wanted) {
    chunk_.resize(wanted);
    std::size_t got = 0;
    while (got < wanted) {
      const ssize_t count = pread(file_of_.get(), chunk_.data() + got, wanted - got,
                                  static_cast<off_t>(offset + got));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw file_error("reading", file_, errno);
      if (count == 0) break;
      got += static_cast<std::size_t>(count);
    }
    chunk_.resize(got);
    return chunk_;
  }

  std::uint64_t mark_before(std::uint64_t offset) {
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(offset, kMarkBytes));
    return hash_of(read(offset - length, length));
  }

 private:
  const std::filesystem::path& file_;
  FileDescriptor file_of_;
  std::string chunk_;
};

// Visits the whole lines from seen.offset on.
bool visit_lines(Reader& reader, TailSeen& seen, const TailVisitor& visit, std::size_t budget,
                 const std::filesystem::path& file) {
  std::string kept;
  bool any = false;
  seen.more = false;
  std::uint64_t at = seen.offset;
  const std::uint64_t begin = at;
  while (at < seen.size) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(kTailChunkBytes, seen.size - at));
    std::string_view rest = reader.read(at, wanted);
    if (rest.empty()) break;
    at += rest.size();
    for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      std::string_view line = rest.substr(0, end);
      if (!kept.empty()) line = kept.append(line);
      seen.offset += line.size() + 1;
      visit.line(line);
      any = true;
      kept.clear();
      rest.remove_prefix(end + 1);
    }
    kept.append(rest);
    if (kept.size() > kMaxLineBytes) {
      throw Error(ErrorCode::kBadInput, fmt::format("reading {}: the line after byte {} has more "
                                                    "than {} bytes",
                                                    file.string(), seen.offset, kMaxLineBytes));
    }
    if (seen.offset - begin > budget && at < seen.size) {
      seen.more = true;
      break;
    }
  }
  return any;
}

}  // namespace

TailNews read_tail(const std::filesystem::path& file, TailSeen& seen, const TailVisitor& visit,
                   std::size_t budget) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) throw file_error("reading", file, errno);
    if (seen.changed < 0) return TailNews::kNone;
    seen = {};
    visit.begun_anew();
    return TailNews::kBegunAnew;
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::int64_t changed =
      std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  const bool is_same = size == seen.size && changed == seen.changed;
  if (is_same && !seen.more) return TailNews::kNone;
  // Without O_NONBLOCK a pipe in the place of a file would be waited for.
  const int opened = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) throw file_error("reading", file, errno);
  Reader reader(file, opened);
  TailNews news = TailNews::kNone;
  if (size < seen.offset ||
      (!is_same && reader.mark_before(seen.offset) != seen.mark && seen.offset > 0)) {
    seen.offset = 0;
    visit.begun_anew();
    news = TailNews::kBegunAnew;
  }
  seen.size = size;
  seen.changed = changed;
  if (visit_lines(reader, seen, visit, budget, file) && news == TailNews::kNone) {
    news = TailNews::kLines;
  }
  seen.mark = reader.mark_before(seen.offset);
  return news;
}

}  // namespace tune
