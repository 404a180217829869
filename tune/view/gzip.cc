#include "tune/view/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "core/error.h"

namespace tune::view {

namespace {

constexpr int kGzipWindow = 15 + 16;
constexpr int kMemory = 8;

}  // namespace

std::string gzipped(std::string_view text, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error(ErrorCode::kIo, "compressing an answer: there is no memory for it");
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
  std::size_t left_in = text.size(), left_out = out.size();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  int result = Z_OK;
  while (result == Z_OK) {
    const auto in = static_cast<uInt>(std::min(left_in, kMost));
    const auto room = static_cast<uInt>(std::min(left_out, kMost));
    stream.avail_in = in;
    stream.avail_out = room;
    result = deflate(&stream, in == left_in ? Z_FINISH : Z_NO_FLUSH);
    left_in -= in - stream.avail_in;
    left_out -= room - stream.avail_out;
  }
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw Error(ErrorCode::kIo, "compressing an answer failed");
  out.resize(out.size() - left_out);
  return out;
}

}  // namespace tune::view
