// The byte stream of a worker, cut into pieces of the first byte's size; then each frame as one of
// a link between agent and driver.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/frame.h"
#include "core/link.h"
#include "fuzz/check.h"

namespace {

using namespace tune;

std::vector<std::string> frames_of(std::string_view bytes, std::size_t piece) {
  std::vector<std::string> frames;
  FrameBuffer buffer;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    buffer.append(bytes.substr(at, piece));
    while (const auto frame = buffer.next()) frames.emplace_back(*frame);
  }
  return frames;
}

// Two links that were in touch before: one of them now hears the given frames.
void hear(const std::vector<std::string>& frames) {
  Link link(3);
  Link peer(2);
  for (const char* text : {"one", "two", "three"}) link.send(text);
  peer.send("four");
  for (const std::string& frame : link.frames()) peer.receive(frame);
  peer.acknowledge();
  for (const std::string& frame : peer.frames()) link.receive(frame);
  std::size_t bytes = 0;
  for (const std::string& frame : frames) {
    fuzz::refused_as(ErrorCode::kProtocol, [&] {
      for (const std::string_view message : link.receive(frame)) bytes += message.size();
    });
    fuzz::require(bytes <= frame.size() * frames.size() + kMaxFrameBytes, "it grows");
    link.acknowledge();
    fuzz::require(link.unacknowledged_bytes() <= 11, "no more is kept than was sent");
  }
  link.send("five");
  for (const std::string& frame : link.frames()) {
    fuzz::refused_as(ErrorCode::kProtocol, [&] { peer.receive(frame); });
  }
}

}  // namespace

TUNE_FUZZ_TARGET(frames)(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  fuzz::refused_as(ErrorCode::kProtocol, [&] {
    const auto frames = frames_of(bytes, std::max<std::size_t>(1, data[0]));
    fuzz::require(frames == frames_of(bytes, 1), "frames do not depend on the pieces");
    hear(frames);
  });
  return 0;
}
