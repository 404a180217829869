#include "core/sha256.h"

#include <doctest/doctest.h>

#include <string>

namespace tune {
namespace {

TEST_CASE("sums are those of FIPS 180-4, whole or in parts of any size") {
  const auto sum = [](const std::string& text) { return to_hex(sha256(text)); };
  CHECK(sum("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sum("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sum(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (std::size_t part = 1; part < 140; ++part) {
    Sha256 parts;
    for (std::size_t at = 0; at < text.size(); at += part) parts.add(text.substr(at, part));
    CHECK(to_hex(parts.end()) == sum(text));
  }
}

TEST_CASE("keyed sums are those of RFC 4231") {
  const auto sum = [](const std::string& key, const std::string& text) {
    return to_hex(hmac_sha256(key, text));
  };
  CHECK(sum(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(sum("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(sum(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

}  // namespace
}  // namespace tune
