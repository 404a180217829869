#include "tune/view/guard.h"

#include <doctest/doctest.h>

#include <set>

namespace tune::view {
namespace {

const Guard kGuard("t0ken", "s3ssion", {.port = 8311});

Asked asked(const std::string& target = "/api/experiments") {
  return {.method = "GET",
          .target = target,
          .hosts = {"127.0.0.1:8311"},
          .origins = {},
          .cookies = "tune-view-8311=s3ssion",
          .authorization = {},
          .fetch_site = {},
          .fetch_mode = {}};
}

TEST_CASE("the page's own request with its cookie is granted, whatever the forwarded port") {
  CHECK(kGuard.check(asked()).kind == Pass::Kind::kGranted);
  for (const char* host : {"127.0.0.1:8311", "localhost:9000", "localhost", "[::1]:8311"}) {
    CAPTURE(host);
    Asked request = asked();
    request.hosts = {host};
    request.origins = {std::string("http://") + host};
    CHECK(kGuard.check(request).kind == Pass::Kind::kGranted);
  }
}

TEST_CASE("a Host that is not loopback's is refused, with the right cookie as well") {
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                           "127.0.0.2", "", "127.0.0.1:", "127.0.0.1:80x", "127.0.0.1:123456",
                           "10.0.0.1:8311", "localhost@evil.example", "LOCALHOST.", "[::1"}) {
    CAPTURE(host);
    Asked request = asked();
    request.hosts = {host};
    const Pass pass = kGuard.check(request);
    CHECK(pass.kind == Pass::Kind::kRefused);
    CHECK(pass.status == 403);
  }
}

TEST_CASE("no Host, and more than one, are refused") {
  Asked request = asked();
  request.hosts = {};
  CHECK(kGuard.check(request).status == 400);
  request.hosts = {"127.0.0.1:8311", "evil.example"};
  CHECK(kGuard.check(request).status == 400);
  request.hosts = {"127.0.0.1:8311", "127.0.0.1:8311"};
  CHECK(kGuard.check(request).status == 400);
}

TEST_CASE("an Origin that is not the page's is refused on every method") {
  for (const char* method :
       {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FOO"}) {
    for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:8311",
                               "http://127.0.0.1:8312", "http://localhost:8311", ""}) {
      CAPTURE(method);
      CAPTURE(origin);
      Asked request = asked();
      request.method = method;
      request.origins = {origin};
      CHECK(kGuard.check(request).status == 403);
    }
  }
}

TEST_CASE("one wrong Origin among right ones is refused") {
  Asked request = asked();
  request.origins = {"http://127.0.0.1:8311", "http://evil.example"};
  CHECK(kGuard.check(request).status == 403);
}

// ---- Orders -------------------------------------------------------------------------------------

const Guard kControl("t0ken", "s3ssion", {.port = 8311, .control = true});

Asked order() {
  Asked request = asked(std::string(kOrderTarget));
  request.method = "POST";
  request.origins = {"http://127.0.0.1:8311"};
  request.content_type = "application/json";
  request.fetch_site = "same-origin";
  return request;
}

TEST_CASE("an order of the page is granted with --control, and refused without") {
  CHECK(kControl.check(order()).kind == Pass::Kind::kGranted);
  const Pass pass = kGuard.check(order());
  CHECK(pass.kind == Pass::Kind::kRefused);
  CHECK(pass.status == 403);
  CHECK(pass.why == "this page only reads: tune view --control changes sweeps");
}

TEST_CASE("an order without the page's own Origin, cookie or JSON is refused") {
  const auto refused = [](int status, auto change) {
    Asked request = order();
    change(request);
    const Pass pass = kControl.check(request);
    CHECK(pass.kind == Pass::Kind::kRefused);
    CHECK(pass.status == status);
  };
  refused(403, [](Asked& one) { one.origins = {}; });
  refused(403, [](Asked& one) { one.origins = {"http://evil.example"}; });
  refused(403, [](Asked& one) { one.origins = {"null"}; });
  refused(403, [](Asked& one) { one.origins.push_back(one.origins.front()); });
  refused(403, [](Asked& one) { one.hosts = {"evil.example"}; });
  refused(403, [](Asked& one) { one.cookies.clear(); });
  refused(403, [](Asked& one) { one.cookies = "tune-view-8311=t0ken"; });
  refused(403, [](Asked& one) { one.cookies = "tune-view-8312=s3ssion"; });
  refused(403, [](Asked& one) { one.fetch_site = "same-site"; });
  refused(403, [](Asked& one) { one.fetch_site = "cross-site"; });
  refused(403, [](Asked& one) { one.fetch_site = "none"; });
  refused(415, [](Asked& one) { one.content_type.clear(); });
  refused(415, [](Asked& one) { one.content_type = "text/plain"; });
  refused(415, [](Asked& one) { one.content_type = "application/x-www-form-urlencoded"; });
}

TEST_CASE("no other method and no other address takes an order") {
  for (const char* method : {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "post"}) {
    CAPTURE(method);
    Asked request = order();
    request.method = method;
    CHECK(kControl.check(request).status == 405);
  }
  for (const char* target :
       {"/", "/api/experiments", "/api/order?x=1", "/api/order/", "/metrics"}) {
    CAPTURE(target);
    Asked request = order();
    request.target = target;
    CHECK(kControl.check(request).status == 405);
  }
}

TEST_CASE("what another site's page asks for is refused, but for going to the page") {
  Asked request = asked();
  request.fetch_site = "cross-site";
  request.fetch_mode = "no-cors";
  CHECK(kGuard.check(request).status == 403);
  request.fetch_mode = "navigate";
  CHECK(kGuard.check(request).kind == Pass::Kind::kGranted);
}

TEST_CASE("only GET and HEAD are methods here") {
  for (const char* method :
       {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "FOO"}) {
    CAPTURE(method);
    Asked request = asked();
    request.method = method;
    CHECK(kGuard.check(request).status == 405);
  }
}

TEST_CASE("addresses with dots, escapes and other letters than the page's are refused") {
  for (const char* target : {"/../etc/passwd", "/api/x/../../y", "/%2e%2e/x", "/a b", "//evil/..",
                             "http://127.0.0.1/", "*", "", "/\\", "/<script>", "/a\"b", "/;ls"}) {
    CAPTURE(target);
    const Pass pass = kGuard.check(asked(target));
    CHECK(pass.kind == Pass::Kind::kRefused);
    CHECK(pass.status == 400);
  }
  CHECK(kGuard.check(asked("/" + std::string(kMaxTargetBytes, 'a'))).status == 414);
}

TEST_CASE("nothing is given without the cookie, or with another one") {
  for (const char* cookies :
       {"", "tune-view-8311=", "tune-view-8311=s3ssio", "tune-view-8311=s3ssionn",
        "tune-view-8312=s3ssion", "x-tune-view-8311=s3ssion", "tune-view-8311",
        "tune-view-8311=t0ken", "; ;;", "=s3ssion"}) {
    CAPTURE(cookies);
    for (const char* target : {"/", "/app.js", "/api/experiments", "/api/stream", "/api/x/0/log"}) {
      Asked request = asked(target);
      request.cookies = cookies;
      CHECK(kGuard.check(request).status == 403);
    }
  }
}

TEST_CASE("the cookie is found among those of other programs on this host") {
  Asked request = asked();
  request.cookies = "a=b; tune-view-8312=other; tune-view-8311=s3ssion; c=d";
  CHECK(kGuard.check(request).kind == Pass::Kind::kGranted);
}

TEST_CASE("the token is exchanged for a cookie that scripts and other sites do not get") {
  Asked request = asked("/?token=t0ken");
  request.cookies = "";
  CHECK(kGuard.check(request).kind == Pass::Kind::kExchange);
  CHECK(kGuard.cookie() == "tune-view-8311=s3ssion; Path=/; HttpOnly; SameSite=Strict");
  for (const char* token : {"", "t0ke", "t0kenn", "T0ken", "s3ssion"}) {
    CAPTURE(token);
    CHECK(kGuard.check(asked(std::string("/?token=") + token)).status == 403);
  }
  request.hosts = {"evil.example"};  // a rebound name cannot try tokens either
  CHECK(kGuard.check(request).status == 403);
}

TEST_CASE("/metrics wants the token as a bearer's, and takes no cookie") {
  CHECK(kGuard.check(asked("/metrics")).status == 401);
  Asked request = asked("/metrics");
  request.authorization = "Bearer t0ken";
  CHECK(kGuard.check(request).kind == Pass::Kind::kGranted);
  for (const char* given :
       {"Bearer", "Bearer ", "Bearer t0ke", "bearer t0ken", "Basic t0ken", "t0ken"}) {
    CAPTURE(given);
    request.authorization = given;
    CHECK(kGuard.check(request).status == 401);
  }
}

TEST_CASE("a bearer's token opens nothing but /metrics") {
  Asked request = asked();
  request.cookies = "";
  request.authorization = "Bearer t0ken";
  CHECK(kGuard.check(request).status == 403);
}

TEST_CASE("drawn secrets differ and are 32 letters") {
  std::set<std::string> drawn;
  for (int i = 0; i < 100; ++i) drawn.insert(drawn_secret());
  CHECK(drawn.size() == 100);
  for (const std::string& one : drawn) CHECK(one.size() == 32);
}

}  // namespace
}  // namespace tune::view
