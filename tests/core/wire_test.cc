#include "core/wire.h"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "core/frame.h"
#include "core/json.h"
#include "core/refusal.h"
#include "skip.h"

namespace tune {
namespace {

std::string protocol_refusal(const std::function<void()>& call) {
  return testing::refusal(call, ErrorCode::kProtocol);
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST_CASE("values are written as the MessagePack specification says, as short as it allows") {
  const std::pair<Value, const char*> cases[] = {
      {nullptr, "c0"},
      {false, "c2"},
      {true, "c3"},
      {0, "00"},
      {127, "7f"},
      {128, "cc80"},
      {256, "cd0100"},
      {65536, "ce00010000"},
      {4294967296, "cf0000000100000000"},
      {-1, "ff"},
      {-32, "e0"},
      {-33, "d0df"},
      {-129, "d1ff7f"},
      {-32769, "d2ffff7fff"},
      {-2147483649, "d3ffffffff7fffffff"},
      {1.0, "cb3ff0000000000000"},
      {"", "a0"},
      {"abc", "a3616263"},
      {list({}), "90"},
      {list({1, "a"}), "9201a161"},
      {Value{{"a", 1}}, "81a16101"},
  };
  for (const auto& [value, bytes] : cases) {
    CAPTURE(to_json(value));
    CHECK(hex(pack(value).bytes) == bytes);
  }
}

TEST_CASE("texts, lists and maps of every length class come back") {
  for (const std::size_t size : {0, 15, 16, 31, 32, 255, 256, 65535, 65536, 70000}) {
    CAPTURE(size);
    const Value text = std::string(size, 'x');
    CHECK(unpack(pack(text)) == text);
    Value::List items(size, Value(1));
    const Value items_value = Value::make_list(std::move(items));
    CHECK(unpack(pack(items_value)) == items_value);
    Value::Map members;
    for (std::size_t i = 0; i < size; ++i) members.emplace_back(std::to_string(i), i);
    const Value map = Value::make_map(std::move(members));
    CHECK(unpack(pack(map)) == map);
    PackWriter out;
    out.binary(text.string());
    PackReader in(out.bytes());
    CHECK(in.binary() == text.string());
    CHECK(in.at_end());
  }
}

TEST_CASE("numbers come back with their type and every bit") {
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-32}, std::int64_t{-33}, INT64_MIN,
                                   INT64_MAX, std::int64_t{255}, std::int64_t{-128}}) {
    CHECK(unpack(pack(value)) == Value(value));
  }
  for (const double value : {0.0, 0.1, -1e300, 5e-324, std::nan(""), 1.0 / 0.0}) {
    CHECK(unpack(pack(value)) == Value(value));
  }
  CHECK(std::signbit(unpack(pack(-0.0)).number()));
}

TEST_CASE("other writers' forms are read too") {
  const auto value = [](std::string_view bytes) { return PackReader(bytes).value(); };
  CHECK(value(std::string_view("\xca\x3f\x80\x00\x00", 5)) == Value(1.0));          // float 32
  CHECK(value(std::string_view("\xcf\0\0\0\0\0\0\0\x01", 9)) == Value(1));          // long for 1
  CHECK(value(std::string_view("\xdb\0\0\0\x01x", 6)) == Value("x"));               // text 32
  CHECK(value(std::string_view("\xdd\0\0\0\x01\x05", 6)) == list({5}));             // array 32
  CHECK(value(std::string_view("\xdf\0\0\0\x01\xa1x\x05", 8)) == Value{{"x", 5}});  // map 32
}

TEST_CASE("a reader says what it expected and where") {
  const Packed packed = pack(list({1, "x"}));
  PackReader in(packed.bytes);
  CHECK(in.array() == 2);
  CHECK(in.integer() == 1);
  CHECK_HAS(protocol_refusal([in]() mutable { in.integer(); }), "expected an integer at byte 2");
  CHECK_HAS(protocol_refusal([in]() mutable { in.boolean(); }), "expected a bool at byte 2");
  CHECK_HAS(protocol_refusal([in]() mutable { in.null(); }), "expected null at byte 2");
  CHECK_HAS(protocol_refusal([in]() mutable { in.number(); }), "expected a number at byte 2");
  CHECK_HAS(protocol_refusal([in]() mutable { in.binary(); }), "expected bytes at byte 2");
  CHECK_HAS(protocol_refusal([in]() mutable { in.array(); }), "expected a list at byte 2");
  CHECK_HAS(protocol_refusal([in]() mutable { in.map(); }), "expected a map at byte 2");
  CHECK_HAS(protocol_refusal([in] { in.expect_end(); }), "2 bytes are left");
  CHECK(in.text() == "x");
  in.expect_end();
  CHECK_HAS(protocol_refusal([in]() mutable { in.text(); }), "ends too early");
  CHECK_HAS(protocol_refusal([in] { in.peek(); }), "ends too early");
}

TEST_CASE("integers that do not fit are refused") {
  PackWriter out;
  out.unsigned_integer(UINT64_MAX);
  CHECK(PackReader(out.bytes()).unsigned_integer() == UINT64_MAX);
  CHECK_HAS(protocol_refusal([&] { PackReader(out.bytes()).integer(); }), "2^63 - 1");
  CHECK_HAS(protocol_refusal([&] { PackReader(out.bytes()).value(); }), "2^63 - 1");
  PackReader skipping(out.bytes());
  skipping.skip();
  CHECK(skipping.at_end());
  CHECK_HAS(protocol_refusal([] { PackReader("\xff").unsigned_integer(); }), "negative");
}

TEST_CASE("skip and raw pass over one whole value of any kind") {
  const Value value = {{"a", list({1, -70000, 0.5, "text", nullptr, true, {{"b", list({})}}})}};
  PackWriter out;
  out.value(value);
  out.binary("bytes");
  out.integer(9);
  PackReader in(out.bytes());
  CHECK(in.raw() == pack(value).bytes);
  in.skip();
  CHECK(in.integer() == 9);
  CHECK(in.at_end());
}

// Arrays (or maps) of one item in each other.
std::string bomb(char opening, std::string_view key, int levels) {
  std::string bytes;
  for (int i = 0; i < levels; ++i) bytes += opening + std::string(key);
  return bytes + '\xc0';
}

TEST_CASE("nesting bombs are refused, nesting up to the limit is read") {
  CHECK(PackReader(bomb('\x91', "", kMaxNesting)).value().is_list());
  for (const int levels : {kMaxNesting + 1, 1000000}) {
    for (const std::string& bytes : {bomb('\x91', "", levels), bomb('\x81', "\xa1k", levels)}) {
      CHECK_HAS(protocol_refusal([&] { PackReader(bytes).value(); }), "nested too deeply");
      CHECK_HAS(protocol_refusal([&] { PackReader(bytes).skip(); }), "nested too deeply");
      CHECK_HAS(protocol_refusal([&] { unpack({bytes}); }), "nested too deeply");
    }
  }
}

// tests/fuzz/messages_fuzz.cc checks that no room is made for them.
TEST_CASE("lengths beyond the input are refused") {
  const std::string_view cases[] = {
      std::string_view("\xdd\xff\xff\xff\xff", 5),  // array of 4 G items
      std::string_view("\xdf\xff\xff\xff\xff", 5),  // map
      std::string_view("\xdf\x80\x00\x00\x00", 5),  // map: twice its size has 33 bits
      std::string_view("\xdb\xff\xff\xff\xff", 5),  // text
      std::string_view("\xda\xff\xff", 3),          // text 16
      std::string_view("\xdc\xff\xff", 3),          // array 16
      std::string_view("\x9f", 1),
      std::string_view("\x8f", 1),
      std::string_view("\xbf", 1),
      std::string_view("\x92\x01", 2),
      std::string_view("\x81\xa1x", 3),
  };
  for (const std::string_view bytes : cases) {
    CAPTURE(hex(std::string(bytes)));
    protocol_refusal([&] { PackReader(bytes).value(); });
    protocol_refusal([&] { PackReader(bytes).skip(); });
    protocol_refusal([&] { decoded<std::vector<std::string>>(bytes); });
  }
  protocol_refusal([] { PackReader(std::string_view("\xc6\xff\xff\xff\xff", 5)).binary(); });
}

TEST_CASE("a list of an item a byte is read, and one that lacks an item is refused") {
  // 0xdd, count, then one byte an item.
  std::string bytes("\xdd\x00\x01\x00\x00", 5);
  bytes.append(65536, '\xc0');
  CHECK(PackReader(bytes).value().list().size() == 65536);
  protocol_refusal(
      [&] { PackReader(std::string_view(bytes).substr(0, bytes.size() - 1)).value(); });
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsHold = false;  // a sanitizer's shadow is larger than any
#else
constexpr bool kLimitsHold = true;
#endif

// The address space that this process may take in addition to what it has.
void limit_memory(std::size_t bytes) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
  const rlimit both{limit, limit};
  ::setrlimit(RLIMIT_AS, &both);
}

TEST_CASE("lists in each other that claim all bytes of a message as items get no room for them") {
  if (!kLimitsHold) return testing::skip("limits of the address space, under a sanitizer");
  // 64 lists that claim 256 Ki items each: 640 MiB of values of 40 bytes. The innermost has them.
  constexpr std::size_t kItems = 256u << 10;
  std::string bytes;
  for (int i = 0; i < kMaxNesting; ++i) bytes += std::string("\xdd\x00\x04\x00\x00", 5);
  bytes.append(kItems, '\xc0');
  const pid_t child = ::fork();
  if (child == 0) {
    limit_memory(128u << 20);
    int code = 1;
    try {
      PackReader(bytes).value();
    } catch (const Error& error) {
      code = error.code() == ErrorCode::kProtocol ? 0 : 2;
    } catch (const std::bad_alloc&) {
      code = 3;
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("what is not a value of ours is refused") {
  protocol_refusal([] { PackReader("\xc1").value(); });          // never used
  protocol_refusal([] { PackReader("\xd4\x01\x01").value(); });  // extension
  protocol_refusal([] { PackReader("\xd4\x01\x01").skip(); });
  protocol_refusal([] { PackReader(std::string_view("\xc4\x01x", 3)).value(); });     // bytes
  protocol_refusal([] { PackReader(std::string_view("\x81\x01\x01", 3)).value(); });  // key 1
  protocol_refusal([] { PackReader(std::string_view("\x81\xa0\x01", 3)).value(); });  // key ""
  protocol_refusal([] {
    PackReader(std::string_view("\x81\xa3"
                                "a/b\x01",
                                6))
        .value();
  });
  protocol_refusal([] { unpack({std::string("\x01\x02")}); });  // two values
}

TEST_CASE("every truncation of a packed value is refused by every way to read it") {
  const Packed whole =
      pack(Value{{"a", list({300, 0.5, "text", {{"b", -70000}}})}, {"c", nullptr}});
  for (std::size_t size = 0; size < whole.bytes.size(); ++size) {
    CAPTURE(size);
    const Packed cut{whole.bytes.substr(0, size)};
    protocol_refusal([&] { unpack(cut); });
    protocol_refusal([&] { PackReader(cut.bytes).skip(); });
    CHECK_FALSE(find_number(cut, "x"));  // and no exception
  }
}

TEST_CASE("numbers are found at key paths without a tree") {
  const Packed packed = pack(Value{{"loss", {{"train", 0.5}, {"test", {{"top1", 2}}}}},
                                   {"text", "3"},
                                   {"flag", true},
                                   {"list", list({1, 2})},
                                   {"n", -7}});
  CHECK(find_number(packed, "loss/train") == 0.5);
  CHECK(find_number(packed, "loss/test/top1") == 2.0);
  CHECK(find_number(packed, "n") == -7.0);
  for (const char* path : {"", "/", "loss", "text", "flag", "list", "list/0", "x", "loss/x", "n/x",
                           "loss/train/", "loss//train", "os"}) {
    CAPTURE(path);
    CHECK_FALSE(find_number(packed, path).has_value());
  }
  CHECK_FALSE(find_number({}, "x"));
  CHECK_FALSE(find_number(pack(3), "x"));
  CHECK_FALSE(find_number({"\x81\xa1x"}, "x"));  // damaged
}

TEST_CASE("frames come out whole however the bytes come in") {
  std::string stream;
  const std::string long_payload(100000, 'y');
  for (const std::string& payload : {std::string("a"), std::string(), long_payload}) {
    append_frame(stream, payload);
  }
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{3}, std::size_t{70000}, stream.size()}) {
    CAPTURE(piece);
    FrameBuffer buffer;
    std::vector<std::string> frames;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      buffer.append(std::string_view(stream).substr(at, piece));
      while (const auto frame = buffer.next()) frames.emplace_back(*frame);
    }
    CHECK(frames == std::vector<std::string>{"a", "", long_payload});
  }
  FrameBuffer buffer;
  buffer.append(std::string_view("\xff\xff\xff\xff", 4));
  CHECK_HAS(protocol_refusal([&] { buffer.next(); }), "4294967295");
}

TEST_CASE("a writer is used again after its bytes are taken or cleared, also for large messages") {
  PackWriter out;
  for (const std::size_t size : {0u, 1u, 14u, 15u, 300u, 70'000u, 3'000'000u, 5u}) {
    CAPTURE(size);
    const std::string text(size, 'x');
    out.clear();
    out.text("cleared");
    out.clear();
    out.array(3), out.text(text), out.integer(-7), out.number(1.5);
    const std::string bytes(out.bytes());
    const PackWriter copy = out;
    CHECK(out.take() == bytes);
    CHECK(out.bytes().empty());
    CHECK(copy.bytes() == bytes);
    PackReader in(bytes);
    CHECK(in.array() == 3);
    CHECK(in.text() == text);
    CHECK(in.integer() == -7);
    CHECK(in.number() == 1.5);
    in.expect_end();
  }
}

}  // namespace
}  // namespace tune
