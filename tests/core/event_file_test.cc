// The bytes are those that TensorBoard's own writer (2.21) makes of the same events.
#include "core/event_file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tune/export/hparams.h"

namespace tune {
namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string record(std::string_view event) {
  std::string out;
  append_record(out, event);
  return out;
}

std::string scalars() {
  ScalarsEvent event;
  event.add("loss/train", 0.1);
  event.add("n", std::numeric_limits<double>::infinity());
  return std::string(event.event(1795000000.25, 7));
}

TEST_CASE("records of a version, a restart and scalars are those of TensorBoard's writer") {
  CHECK(hex(record(version_event(1.5))) ==
        "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  CHECK(hex(record(restart_event(2, 300))) ==
        "100000000000000095fbfe1809000000000000004010ac023a0208011292da01");
  CHECK(hex(record(scalars())) ==
        "2a00000000000000ae8d91f509000010b061bfda4110072a1d0a110a0a6c6f73732f747261696e15cdcccc3d"
        "0a080a016e150000807f7c6bdfbf");
}

TEST_CASE("a plugin's event is that of TensorBoard's writer") {
  CHECK(hex(plugin_event(3, kHparamsEnd, kHparamsPlugin, hparams_end(TrialStatus::kError))) ==
        "0900000000000008402a390a370a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f420608"
        "01120212004a110a0f0a0768706172616d73120422020802");
}

TEST_CASE("records are read back up to the first that is not whole") {
  const std::string whole = record(version_event(1)) + record(scalars());
  const std::string last = record(restart_event(2, 3));
  const auto steps = [](const std::string& text) {
    std::vector<std::uint64_t> found;
    const std::size_t end = for_each_record(
        text, [&](std::string_view event) { found.push_back(head_of_event(event).step); });
    return std::pair(end, found);
  };
  using Steps = std::vector<std::uint64_t>;
  CHECK(steps(whole + last) == std::pair(whole.size() + last.size(), Steps{0, 7, 3}));
  for (std::size_t cut = 0; cut < last.size(); ++cut) {
    CAPTURE(cut);
    CHECK(steps(whole + last.substr(0, cut)) == std::pair(whole.size(), Steps{0, 7}));
  }
  for (std::size_t at = 0; at < last.size(); ++at) {
    CAPTURE(at);
    std::string damaged = last;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    CHECK(steps(whole + damaged) == std::pair(whole.size(), Steps{0, 7}));
  }
}

TEST_CASE("a restart is told from scalars") {
  CHECK(head_of_event(restart_event(2, 300)).is_restart);
  CHECK(head_of_event(restart_event(2, 300)).step == 300);
  CHECK_FALSE(head_of_event(scalars()).is_restart);
  CHECK(head_of_event("\xff\xff").step == 0);  // no event at all
}

}  // namespace
}  // namespace tune
