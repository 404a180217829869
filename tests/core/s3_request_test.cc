#include "core/s3_request.h"

#include <doctest/doctest.h>

#include <string>

#include "core/refusal.h"
#include "core/sha256.h"

namespace tune {
namespace {

using testing::refusal;

// Those of "Examples: Signature Calculations in AWS Signature Version 4", in Amazon's reference of
// S3.
const AwsCredentials kExample{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                              ""};

S3Signed example(const std::string& method, const std::string& path) {
  S3Signed request;
  request.method = method;
  request.path = path;
  request.content_sum = to_hex(sha256(""));
  request.time = "20130524T000000Z";
  request.region = "us-east-1";
  request.headers = {{"host", "examplebucket.s3.amazonaws.com"}, {"x-amz-date", request.time}};
  return request;
}

std::string signature(S3Signed request) {
  request.headers["x-amz-content-sha256"] = request.content_sum;
  const std::string said = s3_authorization(request, kExample);
  return said.substr(said.rfind('=') + 1);
}

TEST_CASE("signatures are those of Amazon's examples") {
  S3Signed get = example("GET", "/test.txt");
  get.headers["range"] = "bytes=0-9";
  CHECK(signature(get) == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");

  S3Signed put = example("PUT", "/test%24file.text");
  put.headers["date"] = "Fri, 24 May 2013 00:00:00 GMT";
  put.headers["x-amz-storage-class"] = "REDUCED_REDUNDANCY";
  put.content_sum = to_hex(sha256("Welcome to Amazon S3."));
  CHECK(signature(put) == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");

  S3Signed lifecycle = example("GET", "/");
  lifecycle.query = {{"lifecycle", ""}};
  CHECK(signature(lifecycle) == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");

  S3Signed list = example("GET", "/");
  list.query = {{"prefix", "J"}, {"max-keys", "2"}};
  CHECK(signature(list) == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  list.headers["x-amz-content-sha256"] = list.content_sum;
  CHECK_HAS(s3_authorization(list, kExample),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=");
}

TEST_CASE("names are encoded byte by byte") {
  CHECK(uri_encoded("a/b c-._~Z9", true) == "a/b%20c-._~Z9");
  CHECK(uri_encoded("a/b", false) == "a%2Fb");
  CHECK(uri_encoded("\xc3\xa4$+&=", true) == "%C3%A4%24%2B%26%3D");
  CHECK(uri_encoded(std::map<std::string, std::string>{{"b", "x y"}, {"a", ""}}) == "a=&b=x%20y");
}

TEST_CASE("an address names a bucket and a prefix") {
  CHECK(parse_s3_address("s3://bucket") == S3Address{"bucket", ""});
  CHECK(parse_s3_address("s3://bucket/") == S3Address{"bucket", ""});
  CHECK(parse_s3_address("s3://my.bucket-1/a/b c/") == S3Address{"my.bucket-1", "a/b c"});
  CHECK(parse_s3_address("s3://bucket/a/b").text() == "s3://bucket/a/b");
  CHECK(s3_folder("s3://bucket/a/b/") == "a/b/");
  CHECK(s3_folder("s3://bucket").empty());
  const std::vector<std::pair<std::string, std::string>> bad{
      {"s3:/bucket/a", "does not begin with s3://"},
      {"s3://", "a bucket of 0 letters"},
      {"s3://b/a", "a bucket of 1 letters"},
      {"s3://buck et/a", "a ' ' in the bucket's name"},
      {"s3://user@host/a", "a '@' in the bucket's name"},
      {"s3://bucket//a", "the part '' in its prefix"},
      {"s3://bucket/a/../b", "the part '..' in its prefix"},
      {"s3://bucket/a\nb", "a control character"},
      {"s3://bucket/" + std::string(501, 'x'), "501 bytes, and 500 are the limit"},
  };
  for (const auto& [address, why] : bad) {
    CAPTURE(address);
    const std::string refused = refusal([&] { parse_s3_address(address); });
    CHECK_HAS(refused, why);
    CHECK_HAS(refused, "write s3://BUCKET/PREFIX");
  }
}

TEST_CASE("answers are read as far as they go") {
  const std::string list =
      "<L><Contents><Key>a&amp;b &lt;1&gt;</Key></Contents><Contents><Key>c</Key></Contents></L>";
  CHECK(xml_texts(list, "Key") == std::vector<std::string>{"a&b <1>", "c"});
  CHECK(xml_texts("<Key>a</Key><Key>cut sho", "Key") == std::vector<std::string>{"a"});
  CHECK(xml_texts("", "Key").empty());
  CHECK(s3_error(
            "<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>") ==
        "ExpiredToken: The token has expired");
  CHECK(s3_error("<html>502</html>").empty());
  CHECK(s3_clock_fault("<Error><Code>AccessDenied</Code></Error>", "20130524T070000Z").empty());
  CHECK(
      s3_clock_fault("<Error><Code>RequestTimeTooSkewed</Code></Error>", "20130524T070000Z") ==
      "this machine's clock says 2013-05-24 07:00:00 UTC, the store's another time: set the clock "
      "of this machine, by NTP, say");
}

}  // namespace
}  // namespace tune
