#include "trainables/command/line_buffer.h"

#include <doctest/doctest.h>

namespace tune {
namespace {

TEST_CASE("lines come whole, however their bytes come") {
  const std::string text = "one\n\ntwo\r\nthree";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    CAPTURE(piece);
    LineBuffer buffer;
    std::string seen;
    for (std::size_t i = 0; i < text.size(); i += piece) {
      buffer.append(std::string_view(text).substr(i, piece));
      while (const auto line = buffer.next()) {
        CHECK_FALSE(line->is_cut);
        seen += std::string(line->text) + "|";
      }
    }
    CHECK(seen == "one||two|");
    const auto rest = buffer.rest();
    REQUIRE(rest);
    CHECK(rest->text == "three");
    CHECK(buffer.lines() == 4);
    CHECK_FALSE(buffer.rest());
  }
}

TEST_CASE("of a line without end only the beginning is kept") {
  LineBuffer buffer;
  const std::string chunk(64u << 10, 'x');
  for (int i = 0; i < 16 * 1024; ++i) {  // 1 GiB
    buffer.append(chunk);
    REQUIRE_FALSE(buffer.next());
    CHECK(buffer.too_long().has_value() == (i >= 16));
  }
  CHECK(buffer.too_long()->text.size() == LineBuffer::kMaxLineBytes);
  buffer.append("end\nnext\n");
  const auto cut = buffer.next();
  REQUIRE(cut);
  CHECK(cut->is_cut);
  CHECK(cut->text == std::string(LineBuffer::kMaxLineBytes, 'x'));
  CHECK_FALSE(buffer.too_long());
  const auto next = buffer.next();
  REQUIRE(next);
  CHECK_FALSE(next->is_cut);
  CHECK(next->text == "next");
}

TEST_CASE("a bar of progress that overwrites its line for hours keeps what stands there last") {
  LineBuffer buffer;
  std::string steps;
  for (int i = 0; i < 1000; ++i) steps += "\rloss=" + std::to_string(i);
  for (int i = 0; i < 1000; ++i) {  // 8 MB
    buffer.append(steps);
    REQUIRE_FALSE(buffer.next());
    CHECK_FALSE(buffer.too_long());
  }
  buffer.append("\rloss=1e-3\r");
  REQUIRE_FALSE(buffer.next());
  buffer.append("\n");
  const auto line = buffer.next();
  REQUIRE(line);
  CHECK(line->text.ends_with("\rloss=1e-3"));
}

TEST_CASE("a line of the greatest length is whole") {
  LineBuffer buffer;
  buffer.append(std::string(LineBuffer::kMaxLineBytes, 'x'));
  REQUIRE_FALSE(buffer.next());
  buffer.append("\n");
  const auto line = buffer.next();
  REQUIRE(line);
  CHECK_FALSE(line->is_cut);
  CHECK(line->text.size() == LineBuffer::kMaxLineBytes);
}

}  // namespace
}  // namespace tune
