// The bytes of the writer. tests/export has TensorBoard itself.
#include "trainables/tensorboard_writer.h"

#include <doctest/doctest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/event_file.h"
#include "core/refusal.h"
#include "core/worker_contract.h"
#include "trainables/access.h"
#include "trainables/png.h"
#include "trainables/temporary_folder.h"

namespace tune::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> events_of(const fs::path& file) {
  std::vector<std::string> events;
  const std::string bytes = read_text(file);
  const std::size_t end =
      for_each_record(bytes, [&](std::string_view event) { events.emplace_back(event); });
  CHECK(end == bytes.size());
  return events;
}

// The field of a message, down a path of field numbers.
std::string within(std::string_view message, const std::vector<int>& path) {
  std::string text(message);
  for (const int number : path) {
    ProtoReader fields(text);
    std::string found;
    while (const auto field = fields.next()) {
      if (field->number == number)
        found = field->text.empty() ? std::to_string(field->value) : field->text;
    }
    text = found;
  }
  return text;
}

constexpr int kSummary = 5, kFirst = 1;

TEST_CASE("every call is an event in the file of its attempt") {
  const TemporaryFolder folder;
  TensorBoardWriter writer(folder.path() / "tensorboard", 1);
  CHECK_FALSE(fs::exists(folder.path() / "tensorboard"));  // until something is written
  writer.scalar("loss", 0.5, 3);
  writer.text("note", "**a**", 4);
  const auto events = events_of(folder.path() / "tensorboard/events.out.tfevents.0000000001.tune");
  REQUIRE(events.size() == 3);
  CHECK(events[0].ends_with("brain.Event:2"));
  CHECK(head_of_event(events[1]).step == 3);
  CHECK(within(events[1], {kSummary, kFirst, 1}) == "loss");
  CHECK(within(events[1], {kSummary, kFirst, 2}) ==
        std::to_string(std::bit_cast<std::uint32_t>(0.5f)));
  CHECK(within(events[2], {kSummary, kFirst, 8, 8}) == "**a**");
  CHECK(within(events[2], {kSummary, kFirst, 9, 1, 1}) == "text");
}

TEST_CASE("a later attempt takes the place of what came from its first step on") {
  const TemporaryFolder folder;
  TensorBoardWriter(folder.path(), 1).scalar("loss", 1, 5);
  TensorBoardWriter(folder.path(), 2).scalar("loss", 2, 4);
  const auto events = events_of(folder.path() / "events.out.tfevents.0000000002.tune");
  REQUIRE(events.size() == 3);
  CHECK(head_of_event(events[1]).is_restart);
  CHECK(head_of_event(events[1]).step == 4);
  CHECK(events_of(folder.path() / "events.out.tfevents.0000000001.tune").size() == 2);
}

TEST_CASE("an image is a PNG with its size, and one whose bytes do not fit is refused") {
  const TemporaryFolder folder;
  TensorBoardWriter writer(folder.path(), 1);
  const std::vector<std::uint8_t> pixels = {0, 50, 100, 150, 200, 250};
  writer.image("a", {.width = 2, .height = 3, .channels = 1, .pixels = pixels}, 1);
  writer.image("a", {.width = 2, .height = 1, .channels = 3, .pixels = pixels}, 1);
  const auto events = events_of(folder.path() / "events.out.tfevents.0000000001.tune");
  const std::string png = within(events[1], {kSummary, kFirst, 4, 4});
  CHECK(png.starts_with("\x89PNG\r\n\x1a\n"));
  CHECK(png.substr(16, 8) == std::string("\0\0\0\2\0\0\0\3", 8));
  CHECK(png.substr(24, 2) == std::string("\x08\0", 2));  // grey
  CHECK(within(events[1], {kSummary, kFirst, 4, 2}) == "2");
  CHECK(within(events[2], {kSummary, kFirst, 4, 3}) == "3");
  for (const TensorBoardWriter::Image& bad : std::vector<TensorBoardWriter::Image>{
           {.width = 2, .height = 2, .channels = 1, .pixels = pixels},
           {.width = 3, .height = 1, .channels = 2, .pixels = pixels},
           {.width = 0, .height = 0, .channels = 1, .pixels = {}},
           {.width = 6, .height = 0, .channels = 1, .pixels = pixels}}) {
    CHECK_THROWS_WITH_AS(writer.image("a", bad, 1), doctest::Contains("writing the image a"),
                         Error);
  }
}

TEST_CASE("a histogram counts what is finite, and nothing finite is no event") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  CHECK(histogram_event(1, 1, "h", std::vector<double>{none}).empty());
  const std::string event =
      histogram_event(1, 2, "h", std::vector<double>{-1, 0, 0.5, none, 1e300, 0.5});
  const auto number = [&](int field) {
    return std::bit_cast<double>(std::stoull(within(event, {kSummary, kFirst, 5, field})));
  };
  CHECK(number(1) == -1);
  CHECK(number(2) == 1e300);
  CHECK(number(3) == 5);
  const std::string limits = within(event, {kSummary, kFirst, 5, 6});
  const std::string counts = within(event, {kSummary, kFirst, 5, 7});
  REQUIRE(limits.size() == counts.size());
  double all = 0;
  for (std::size_t i = 0; i < counts.size(); i += 8) {
    std::uint64_t bits = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      bits |= std::uint64_t{static_cast<unsigned char>(counts[i + k])} << 8 * k;
    }
    all += std::bit_cast<double>(bits);
  }
  CHECK(all == 5);
  // -1, 0, 0.5 and 1e300, with empty ones between and around them.
  CHECK(counts.size() / 8 == 8);
}

TEST_CASE(
    "rank 0 of an attempt writes into its trial's folder; others, and restored ones, nothing") {
  const TemporaryFolder folder;
  StartWorker start;
  start.trial_directory = folder.path() / "t";
  start.launch.attempt = {1};
  const Context first = ContextBuilder::for_worker(start);
  first.writer().scalar("x", 1, 1);
  CHECK(first.writer().is_open());
  CHECK(fs::exists(folder.path() / "t/tensorboard/events.out.tfevents.0000000001.tune"));
  start.rank = 1;
  start.trial_directory = folder.path() / "u";
  const Context second = ContextBuilder::for_worker(start);
  second.writer().scalar("x", 1, 1);
  CHECK_FALSE(second.writer().is_open());
  const Context restored = ContextBuilder::for_restore("t", folder.path() / "u", 1, 1);
  restored.writer().text("x", "y", 1);
  CHECK_FALSE(fs::exists(folder.path() / "u"));
}

TEST_CASE("a folder that cannot be written is an error with its path") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "a file stands in the way";
  TensorBoardWriter writer(folder.path() / "file/below", 1);
  CHECK_THROWS_WITH_AS(writer.scalar("x", 1, 1), doctest::Contains("file/below"), Error);
}

}  // namespace
}  // namespace tune::testing
