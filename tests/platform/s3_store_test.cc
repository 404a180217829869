#include "core/platform/s3_store.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/aws_settings.h"
#include "core/object_folder.h"
#include "core/refusal.h"
#include "s3_stand.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

using Kind = ObjectError::Kind;
using testing::S3Found;
using testing::S3Stand;

const std::string kObjectAddress = "s3://checkpoints/a prefix/\xc3\xa4&$";

Kind kind_of_failure(const auto& call) {
  try {
    call();
  } catch (const ObjectError& error) {
    return error.kind();
  }
  FAIL("nothing was refused");
  return {};
}

TEST_CASE("objects are written, listed, read and removed by signed requests, over one connection") {
  S3Stand stand;
  for (const std::string token : {"", "a token/+="}) {
    stand.credentials.token = token;
    const S3Found found(stand.environment());
    S3Store store({kObjectAddress});
    std::string bytes(3u << 20, 'x');
    bytes[7] = '\0';
    store.put("t/one & two+%", bytes);
    store.put("t/empty", "");
    store.put("u/other", "3");
    CHECK(stand.objects().at("a prefix/\xc3\xa4&$/t/one & two+%") == bytes);
    CHECK(store.list("t/", "") == std::vector<std::string>{"t/empty", "t/one & two+%"});
    CHECK(store.list("t/", "t/empty") == std::vector<std::string>{"t/one & two+%"});
    CHECK(store.get("t/one & two+%") == bytes);
    CHECK(store.get("t/empty").empty());
    CHECK(kind_of_failure([&] { store.get("t/none"); }) == Kind::kAbsent);
    store.remove("t/one & two+%");
    store.remove("t/none");
    CHECK(all_names(store, "") == std::vector<std::string>{"t/empty", "u/other"});
    prove(store, "nonce");
  }
  CHECK(stand.connections() == 2);
}

TEST_CASE("failures are told apart by what may help, and never show a secret") {
  S3Stand stand;
  const S3Found found(stand.environment());
  S3Store store({kObjectAddress});
  struct Failure {
    int status;
    const char* code;
    Kind kind;
  };
  for (const Failure& one : {Failure{403, "AccessDenied", Kind::kDenied},
                             {400, "ExpiredToken", Kind::kDenied},
                             {401, "Unauthorized", Kind::kDenied},
                             {503, "SlowDown", Kind::kAway},
                             {500, "InternalError", Kind::kAway},
                             {429, "TooMany", Kind::kAway},
                             {408, "RequestTimeout", Kind::kAway},
                             {404, "NoSuchBucket", Kind::kRefused},
                             {507, "InsufficientStorage", Kind::kRefused},
                             {413, "EntityTooLarge", Kind::kRefused}}) {
    CAPTURE(one.code);
    stand.refuse(one.status, one.code);
    CHECK(kind_of_failure([&] { store.put("x", "1"); }) == one.kind);
    const std::string said = testing::refusal([&] { store.put("x", "1"); }, ErrorCode::kIo);
    CHECK_HAS(said, "writing " + kObjectAddress + "/x at " + stand.endpoint());
    CHECK_HAS(said, one.code);
    CHECK_FALSE(testing::has(said, stand.credentials.secret));
    CHECK_FALSE(testing::has(said, stand.credentials.key_id));
  }
  stand.answer_by([](const S3Stand::Asked&) { return S3Stand::Answer{.breaks_off = true}; });
  CHECK(kind_of_failure([&] { store.get("x"); }) == Kind::kAway);
  stand.put("a prefix/\xc3\xa4&$/x", std::string(100'000, 'y'));
  for (const std::size_t bytes : {0u, 1u, 20u, 60u, 50'000u, 100'030u}) {
    stand.answer_by([bytes](const S3Stand::Asked&) {
      return S3Stand::Answer{200, std::string(100'000, 'y'), false, bytes};
    });
    CHECK(kind_of_failure([&] { store.get("x"); }) == Kind::kAway);
  }
  stand.refuse(0);
  CHECK(store.get("x").size() == 100'000);
  const S3Found nobody(
      std::map<std::string, std::string>{{"AWS_ENDPOINT_URL", "http://127.0.0.1:1"}});
  CHECK(kind_of_failure([] { S3Store({kObjectAddress}).get("x"); }) == Kind::kAway);
}

TEST_CASE("a clock that is hours off is told with both times, and may be set right") {
  S3Stand stand;
  const S3Found found(stand.environment());
  S3Store store({kObjectAddress});
  stand.answer_by([](const S3Stand::Asked&) {
    return S3Stand::Answer{403,
                           "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too "
                           "large.</Message><RequestTime>20130524T070000Z</RequestTime>"
                           "<ServerTime>2013-05-24T00:00:07Z</ServerTime></Error>"};
  });
  CHECK(kind_of_failure([&] { store.get("x"); }) == Kind::kSkewed);
  const std::string said = testing::refusal([&] { store.get("x"); }, ErrorCode::kIo);
  CHECK_HAS(said,
            "403 RequestTimeTooSkewed: The difference is too large; this machine's clock says");
  CHECK_HAS(said, " UTC, the store's 2013-05-24 00:00:07 UTC: set the clock of this machine");
  stand.answer_by(nullptr);
  store.put("x", "1");
  CHECK(store.get("x") == "1");
}

TEST_CASE("credentials are read again when they are refused") {
  S3Stand stand;
  testing::TemporaryFolder folder;
  const std::string file = folder.path() / "credentials";
  const auto write = [&](const std::string& secret) {
    std::ofstream(file) << "[default]\naws_access_key_id = " << stand.credentials.key_id
                        << "\naws_secret_access_key = " << secret << "\n";
  };
  write("an old one");
  const S3Found found({{"AWS_SHARED_CREDENTIALS_FILE", file},
                       {"AWS_CONFIG_FILE", "/dev/null"},
                       {"AWS_REGION", S3Stand::kRegion},
                       {"AWS_ENDPOINT_URL", stand.endpoint()}});
  S3Store store({kObjectAddress});
  CHECK(kind_of_failure([&] { store.put("x", "1"); }) == Kind::kDenied);
  write(stand.credentials.secret);
  store.put("x", "1");
  CHECK(store.get("x") == "1");
}

TEST_CASE("what others say of the endpoint counts where these settings are silent") {
  S3Stand stand;
  auto variables = stand.environment();
  variables.erase("AWS_ENDPOINT_URL");
  variables.erase("AWS_REGION");
  variables["AWS_CONFIG_FILE"] = "/dev/null";
  const S3Found found(variables);
  S3Store store({kObjectAddress, stand.endpoint(), S3Stand::kRegion});
  store.put("x", "1");
  CHECK(store.get("x") == "1");
}

TEST_CASE("a request that hangs ends when it is abandoned") {
  S3Stand stand;
  std::atomic<bool> hangs = false;
  stand.answer_by([&](const S3Stand::Asked&) -> std::optional<S3Stand::Answer> {
    hangs = true;
    std::this_thread::sleep_for(std::chrono::seconds(4));
    return std::nullopt;
  });
  const S3Found found(stand.environment());
  S3Store store({kObjectAddress});
  std::thread other([&] {
    while (!hangs) std::this_thread::yield();
    store.abandon();
  });
  const auto begin = std::chrono::steady_clock::now();
  CHECK(kind_of_failure([&] { store.get("x"); }) == Kind::kAway);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
  other.join();
}

}  // namespace
}  // namespace tune
