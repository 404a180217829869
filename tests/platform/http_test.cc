// Against a server of one thread in this process.
#include "core/platform/http.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/refusal.h"
#include "platform/one_answer.h"
#include "skip.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

using testing::has_libcurl;
using testing::OneAnswer;

TEST_CASE("a request arrives whole, and its answer comes back") {
  if (!has_libcurl()) return testing::skip("there is no libcurl here");
  OneAnswer server("HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nyes!");
  const HttpAnswer answer = ask_http({.method = "POST",
                                      .url = server.url() + "/hook?token=x",
                                      .headers = {"Content-Type: application/json"},
                                      .body = R"({"a": "b\n"})",
                                      .user = "me:secret"});
  CHECK(answer.status == 201);
  CHECK(answer.is_good());
  CHECK(answer.body == "yes!");
  const std::string request = server.request();
  CHECK_HAS(request, "POST /hook?token=x HTTP/1.1\r\n");
  CHECK_HAS(request, "Content-Type: application/json\r\n");
  CHECK_HAS(request, "Authorization: Basic bWU6c2VjcmV0\r\n");
  CHECK(request.ends_with("\r\n\r\n{\"a\": \"b\\n\"}"));
}

TEST_CASE("a file is sent as it is, and one that is not there is an error in words") {
  if (!has_libcurl()) return testing::skip("there is no libcurl here");
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "x.bin";
  std::ofstream(file, std::ios::binary) << std::string(1000, 'x') << "end";
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  CHECK(ask_http({.method = "PUT", .url = server.url() + "/a", .body_file = file}).is_good());
  CHECK_HAS(server.request(), "PUT /a HTTP/1.1\r\n");
  CHECK_HAS(server.request(), "Content-Length: 1003\r\n");
  CHECK(server.request().ends_with("xxend"));
  const HttpAnswer none =
      ask_http({.method = "PUT", .url = "http://127.0.0.1:1/", .body_file = "no"});
  CHECK(none.error == "the file no cannot be read");
}

TEST_CASE("a redirection is an answer, and is not followed") {
  if (!has_libcurl()) return testing::skip("there is no libcurl here");
  OneAnswer server(
      "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
  const HttpAnswer answer = ask_http({.url = server.url()});
  CHECK(answer.status == 302);
  CHECK_FALSE(answer.is_good());
}

TEST_CASE("nobody there, and other schemes than the web's, are errors in words") {
  if (!has_libcurl()) return testing::skip("there is no libcurl here");
  for (const char* url : {"http://127.0.0.1:1/", "file:///etc/passwd", "no address"}) {
    CAPTURE(url);
    const HttpAnswer answer = ask_http({.url = url});
    CHECK(answer.status == 0);
    CHECK_FALSE(answer.error.empty());
    CHECK(answer.body.empty());
  }
}

TEST_CASE("a server that says nothing is given up after the limit") {
  if (!has_libcurl()) return testing::skip("there is no libcurl here");
  OneAnswer silent("");
  const HttpAnswer answer = ask_http({.url = silent.url(), .limit = std::chrono::milliseconds(50)});
  CHECK(answer.status == 0);
  CHECK_FALSE(answer.error.empty());
}

TEST_CASE("what is shown of an address holds no secret") {
  CHECK(shown_address("https://hooks.example.com/services/T0/B0/secret?x=y") ==
        "https://hooks.example.com");
  CHECK(shown_address("http://me:secret@host:8080") == "http://host:8080");
  CHECK(shown_address("secret") == "the address");
}

}  // namespace
}  // namespace tune
