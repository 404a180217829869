// The server over sockets, spoken to as browsers, scripts and attackers do.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/refusal.h"
#include "tune/results/experiment_head.h"
#include "tune/view/orders.h"
#include "view/served.h"

namespace tune::view {
namespace {

std::string head_key(const std::filesystem::path& folder) {
  return read_head(folder).key;
}

TEST_CASE("the token gives a cookie, and with it the page and its data") {
  const Served served;
  const std::string welcome = served.get("/?token=" + served.token_, "");
  CHECK(is_status(welcome, 200));
  CHECK_HAS(welcome, "HttpOnly; SameSite=Strict");
  CHECK_HAS(welcome, "tune-view-" + std::to_string(served.port()));
  const std::string page = served.get("/", served.with_cookie());
  CHECK(is_status(page, 200));
  CHECK_HAS(page, "<script type=\"module\" src=\"/app.js\">");
  CHECK_HAS(served.get("/app.js", served.with_cookie()), "Content-Type: text/javascript");
  CHECK_HAS(served.get("/api/experiments", served.with_cookie()), "\"folder\":\"s\"");
  CHECK(is_status(served.get("/nothing.js", served.with_cookie()), 404));
}

TEST_CASE("every answer, also a refusal, forbids foreign scripts and frames") {
  const Served served;
  for (const std::string& answer :
       {served.get("/", served.with_cookie()), served.get("/", ""),
        served.get("/api/experiments", served.with_cookie()),
        served.ask(served.words("POST", "/", "Connection: close\r\n"))}) {
    CHECK_HAS(answer, "Content-Security-Policy: default-src 'self'; frame-ancestors 'none'");
    CHECK_HAS(answer, "X-Content-Type-Options: nosniff");
    CHECK_HAS(answer, "Referrer-Policy: no-referrer");
  }
}

TEST_CASE("without the cookie nothing is given; foreign hosts, origins and methods are refused") {
  const Served served;
  for (const char* target : {"/", "/app.js", "/api/experiments", "/api/stream", "/style.css"}) {
    CAPTURE(target);
    CHECK(is_status(served.get(target, ""), 403));
    CHECK(is_status(served.get(target, served.with_cookie() + "Origin: http://evil.example\r\n"),
                    403));
    CHECK(is_status(served.ask(std::string("GET ") + target +
                               " HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n" +
                               served.with_cookie() + "\r\n"),
                    403));
    for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"}) {
      CHECK(is_status(
          served.ask(served.words(method, target, "Connection: close\r\n" + served.with_cookie())),
          405));
    }
  }
  CHECK(is_status(
      served.ask("GET / HTTP/1.1\r\nConnection: close\r\n" + served.with_cookie() + "\r\n"), 400));
}

TEST_CASE(
    "bodies, endless headers and words that make no request are refused, and the connection ends") {
  const Served served;
  CHECK(is_status(
      served.ask(served.words("POST", "/", served.with_cookie() + "Content-Length: 5\r\n") +
                 "hello"),
      413));
  CHECK(is_status(
      served.ask(served.words("GET", "/", served.with_cookie() + "Transfer-Encoding: chunked\r\n") +
                 "5\r\nhello\r\n0\r\n\r\n"),
      413));
  CHECK(is_status(served.ask("this is not HTTP\r\n\r\n"), 400));
  CHECK(is_status(served.ask(served.words("GET", "/" + std::string(4000, 'a'),
                                          "Connection: close\r\n" + served.with_cookie())),
                  414));
  Client client(served.port());
  client.send("GET / HTTP/1.1\r\nHost: " + served.host() + "\r\n");
  for (int i = 0; i < 400; ++i)
    client.send("X-" + std::to_string(i) + ": " + std::string(1000, 'x') + "\r\n");
  const std::string answer = client.read_all();
  CHECK((is_status(answer, 431) || answer.empty()));  // empty: it was closed while we still sent
  CHECK(is_status(served.get("/", served.with_cookie()), 200));  // the others are served on
}

TEST_CASE("orders are read to the letter, and answered with what their driver says") {
  const Served served({.control = true});
  const std::string key = head_key(served.folder_.path() / "s");
  const std::string answer = served.order(R"({"x":")" + key + R"(","do":"stop","trial":0})");
  CHECK(is_status(answer, 200));  // told by the driver, or that none runs it
  CHECK_HAS(answer, "{\"error\":");
  CHECK_HAS(served.get("/api/experiments", served.with_cookie()), "\"control\":true");
  CHECK(is_status(served.order(R"({"x":"0","do":"stop","trial":0})"), 404));
  for (const char* body :
       {"", "[]", "stop", R"({"x":"KEY"})", R"({"x":"KEY","do":"drain","node":"n"})",
        R"({"x":"KEY","do":"pool","max":9})", R"({"x":"KEY","do":"stop"})",
        R"({"x":"KEY","do":"stop","trial":"../0"})", R"({"x":"KEY","do":"stop","trial":-1})",
        R"({"x":"KEY","do":"stop","trial":0,"reason":7})", R"({"x":"KEY","do":"add","config":[1]})",
        R"({"x":"KEY","do":"change","num_samples":1.5})", R"({"x":7,"do":"stop","trial":0})"}) {
    CAPTURE(body);
    std::string text = body;
    if (const auto at = text.find("KEY"); at != text.npos) text.replace(at, 3, key);
    CHECK(is_status(served.order(text), 400));
  }
  CHECK(is_status(served.order(std::string(kMaxOrderBytes + 1, ' ')), 413));
  CHECK(is_status(served.order("{}", "Origin: http://evil.example\r\n"), 403));
  CHECK(is_status(served.get("/", served.with_cookie()), 200));
}

TEST_CASE("without --control no order has a body to be read") {
  const Served served;
  CHECK(is_status(served.order("{}"), 413));
  CHECK(is_status(served.ask(served.words("POST", "/api/order",
                                          "Connection: close\r\n" + served.with_cookie())),
                  403));
  CHECK_HAS(served.get("/api/experiments", served.with_cookie()), "\"control\":false");
}

TEST_CASE("HEAD has the header alone, and a connection serves many requests") {
  const Served served;
  Client client(served.port());
  client.send(served.words("HEAD", "/app.js", served.with_cookie()));
  const std::string head = client.read_until("\r\n\r\n");
  CHECK(is_status(head, 200));
  CHECK(head.ends_with("\r\n\r\n"));
  client.send(served.words("GET", "/icon.svg", served.with_cookie() + "Connection: close\r\n"));
  CHECK_HAS(client.read_all(), "</svg>");
}

TEST_CASE("answers are compressed for those who take that, and kept by their ETag") {
  const Served served;
  const std::string packed =
      served.get("/app.js", served.with_cookie() + "Accept-Encoding: gzip\r\n");
  CHECK_HAS(packed, "Content-Encoding: gzip");
  const std::size_t at = packed.find("ETag: ") + 6;
  const std::string etag = packed.substr(at, packed.find('\r', at) - at);
  const std::string again =
      served.get("/app.js", served.with_cookie() + "If-None-Match: " + etag + "\r\n");
  CHECK(is_status(again, 304));
}

TEST_CASE("/metrics is for those who have the token as a bearer") {
  const Served served;
  CHECK(is_status(served.get("/metrics", served.with_cookie()), 401));
  CHECK_HAS(served.get("/metrics", "Authorization: Bearer " + served.token_ + "\r\n"),
            "# TYPE tune_trials gauge");
}

TEST_CASE("a stream begins at once, and tells on a new connection what changed since") {
  const Served served;
  const std::string key = served.key();
  Client first(served.port());
  first.send(served.words("GET", "/api/stream", served.with_cookie()));
  CHECK_HAS(first.read_until("event: hello"), "text/event-stream");
  served.get("/api/x/" + key + "/meta", served.with_cookie());  // it is loaded now: a change
  const std::string told = first.read_until("event: change\ndata: [\"" + key + "\"]");
  const std::size_t at = told.find("id: ") + 4;
  REQUIRE(at > 4);
  const std::string id = told.substr(at, told.find('\n', at) - at);
  const std::string boot = id.substr(0, id.find('-'));
  const auto resumed = [&](const std::string& last) {
    Client client(served.port());
    client.send(served.words("GET", "/api/stream",
                             served.with_cookie() + "Last-Event-ID: " + last + "\r\n"));
    return client.read_until("event: change");
  };
  CHECK_HAS(resumed(boot + "-0"), "event: change");
  CHECK_HAS(resumed("another-7"), "event: change");  // of an earlier start: all is new
}

TEST_CASE("clients that go away in the middle of anything do no harm") {
  const Served served;
  const std::string whole = served.words("GET", "/app.js", served.with_cookie());
  for (std::size_t length = 1; length < whole.size(); length += 7) {
    Client client(served.port());
    client.send(whole.substr(0, length));
  }
  for (int i = 0; i < 50; ++i) {
    Client client(served.port());
    client.send(whole + served.words("GET", "/api/experiments", served.with_cookie()));
  }
  CHECK(is_status(served.get("/", served.with_cookie()), 200));
}

TEST_CASE("a client that takes no answer is dropped, and one that sends half a request") {
  const Served served(
      {.patience = {.request = std::chrono::seconds(1), .write = std::chrono::seconds(1)}});
  Client half(served.port());
  half.send("GET / HTTP/1.1\r\nHost: ");
  CHECK(half.read_all().empty());  // it was closed
  Client slow(served.port());
  std::string all;  // of requests with some 36 MB of answers: more than sockets hold
  for (int i = 0; i < 4000; ++i) all += served.words("GET", "/app.js", served.with_cookie());
  slow.send(all);
  CHECK(slow.is_dropped());
  CHECK(is_status(served.get("/", served.with_cookie()), 200));  // the others are served on
}

TEST_CASE("a port in use is refused with the remedy") {
  const Served served;
  CHECK_HAS(
      testing::refusal([&] { Server({.port = served.port()}, Storage(served.folder_.path())); }),
      "choose another with --port");
}

}  // namespace
}  // namespace tune::view
