// The page for other machines: by TLS, with a certificate and a token.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/process.h"
#include "core/refusal.h"
#include "tune/view/guard.h"
#include "tune/view/server.h"
#include "view/certificate.h"
#include "view/folder.h"

namespace tune::view {
namespace {

FileDescriptor connected_to(std::uint16_t port) {
  FileDescriptor connected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{20, 0};
  setsockopt(connected.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(connected.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return connected;
}

// A browser that trusts the certificate and looks for the name in it.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const std::string& trusted,
            const std::string& name = "node7.example", int newest = TLS1_3_VERSION)
      : socket_(connected_to(port)),
        context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        ssl_(nullptr, SSL_free) {
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_min_proto_version(context_.get(), 0);
    SSL_CTX_set_security_level(context_.get(), 0);  // old versions have old digests
    SSL_CTX_set_max_proto_version(context_.get(), newest);
    REQUIRE(SSL_CTX_load_verify_locations(context_.get(), trusted.c_str(), nullptr) == 1);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set1_host(ssl_.get(), name.c_str());
    SSL_set_fd(ssl_.get(), socket_.get());
    is_open_ = SSL_connect(ssl_.get()) == 1;
  }
  bool is_open() const { return is_open_; }
  std::string version() const { return SSL_get_version(ssl_.get()); }
  void send(const std::string& text) {
    REQUIRE(SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())) ==
            static_cast<int>(text.size()));
  }
  // Up to the mark, or to the end.
  std::string read_until(const std::string& mark) {
    std::string got;
    char buffer[16384];
    while (mark.empty() || got.find(mark) == got.npos) {
      const int count = SSL_read(ssl_.get(), buffer, sizeof buffer);
      if (count <= 0) break;
      got.append(buffer, static_cast<std::size_t>(count));
    }
    return got;
  }

 private:
  FileDescriptor socket_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  bool is_open_ = false;
};

class ServedByTls {
 public:
  explicit ServedByTls(Patience patience = {}, bool control = false) {
    testing::begin_experiment(folder_.path() / "r" / "s");
    testing::add_trial(folder_.path() / "r" / "s", 0, "{\"lr\":1}", "{\"loss\":3}\n");
    files_ = testing::write_identity(folder_.path());
    server_ = std::make_unique<Server>(
        ServerOptions{
            .address = "0.0.0.0", .patience = patience, .control = control, .tls = files_},
        Storage(folder_.path() / "r"));
    thread_ = std::thread([this] { server_->run(); });
    const std::string address = server_->address();
    token_ = address.substr(address.find('=') + 1);
  }
  ~ServedByTls() {
    server_->stop();
    thread_.join();
  }
  std::string host() const { return "node7.example:" + std::to_string(server_->port()); }
  std::string get(const std::string& target, const std::string& more = {}) const {
    return "GET " + target + " HTTP/1.1\r\nHost: " + host() + "\r\nConnection: close\r\n" + more +
           "\r\n";
  }
  std::string ask(const std::string& words) const {
    TlsClient client(server_->port(), files_.certificate);
    REQUIRE(client.is_open());
    client.send(words);
    return client.read_until("");
  }
  std::string cookie() const {
    const std::string welcome = ask(get("/?token=" + token_));
    const std::size_t at = welcome.find("Set-Cookie: ") + 12;
    return "Cookie: " + welcome.substr(at, welcome.find(';', at) - at) + "\r\n";
  }

  testing::TemporaryFolder folder_;
  TlsFiles files_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
  std::string token_;
};

bool has_status(const std::string& answer, int status) {
  return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}

TEST_CASE(
    "on any address the page is served by TLS, for the token, under a name of the certificate") {
  const ServedByTls served;
  CHECK(served.server_->address() == "https://" + served.host() + "/?token=" + served.token_);
  CHECK_FALSE(served.server_->is_on_loopback());
  const std::string welcome = served.ask(served.get("/?token=" + served.token_));
  CHECK(has_status(welcome, 200));
  CHECK_HAS(welcome, "; Path=/; HttpOnly; SameSite=Strict; Secure\r\n");
  const std::string cookie = served.cookie();
  CHECK_HAS(served.ask(served.get("/", cookie)), "<script type=\"module\" src=\"/app.js\">");
  CHECK_HAS(served.ask(served.get("/api/experiments", cookie)), "\"folder\":\"s\"");
  CHECK_HAS(served.ask(served.get("/metrics", "Authorization: Bearer " + served.token_ + "\r\n")),
            "# TYPE tune_trials gauge");
  TlsClient many(served.server_->port(), served.files_.certificate);
  many.send("GET /app.js HTTP/1.1\r\nHost: " + served.host() + "\r\n" + cookie + "\r\n");
  CHECK_HAS(many.read_until("state.onMove(show);"), "200 OK");  // larger than one record of TLS
  many.send(served.get("/icon.svg", cookie));
  CHECK_HAS(many.read_until(""), "</svg>");
}

TEST_CASE("by TLS nothing is given without the token, to foreign names, origins or methods") {
  const ServedByTls served;
  const std::string cookie = served.cookie();
  CHECK(has_status(served.ask(served.get("/")), 403));
  CHECK(has_status(served.ask(served.get("/?token=0")), 403));
  CHECK(has_status(
      served.ask("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n" + cookie + "\r\n"),
      403));
  CHECK(has_status(served.ask(served.get("/", cookie + "Origin: http://" + served.host() + "\r\n")),
                   403));  // the page's own is https
  CHECK(has_status(
      served.ask(served.get("/", cookie + "Origin: https://" + served.host() + "\r\n")), 200));
  CHECK(has_status(served.ask("DELETE / HTTP/1.1\r\nHost: " + served.host() +
                              "\r\nConnection: close\r\n" + cookie + "\r\n"),
                   405));
}

TEST_CASE("a stream of news goes through TLS, and an order with its Origin") {
  const ServedByTls served({}, true);
  const std::string cookie = served.cookie();
  std::string list = served.ask(served.get("/api/experiments", cookie));
  const std::string key = list.substr(list.find("\"key\":\"") + 7, 16);
  TlsClient stream(served.server_->port(), served.files_.certificate);
  stream.send("GET /api/stream HTTP/1.1\r\nHost: " + served.host() + "\r\n" + cookie + "\r\n");
  CHECK_HAS(stream.read_until("event: hello"), "text/event-stream");
  served.ask(served.get("/api/x/" + key + "/meta", cookie));  // it is loaded now: a change
  CHECK_HAS(stream.read_until("event: change\ndata: [\"" + key + "\"]"), key);
  const std::string body = R"({"x":")" + key + R"(","do":"stop","trial":0})";
  const auto order = [&](const std::string& scheme) {
    return served.ask("POST /api/order HTTP/1.1\r\nHost: " + served.host() +
                      "\r\nContent-Type: application/json\r\nConnection: close\r\nOrigin: " +
                      scheme + "://" + served.host() + "\r\n" + cookie +
                      "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  };
  CHECK(has_status(order("https"), 200));
  CHECK(has_status(order("http"), 403));
}

TEST_CASE("a client that speaks plain HTTP to the port of TLS is told so, and gets nothing") {
  const ServedByTls served;
  const FileDescriptor plain = connected_to(served.server_->port());
  const std::string words = served.get("/?token=" + served.token_);
  REQUIRE(send(plain.get(), words.data(), words.size(), MSG_NOSIGNAL) > 0);
  std::string answer;
  char buffer[4096];
  for (ssize_t count = 0; (count = read(plain.get(), buffer, sizeof buffer)) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  CHECK(has_status(answer, 400));
  CHECK_HAS(answer, "this page is served by https only");
  CHECK(answer.find("Set-Cookie") == answer.npos);
}

TEST_CASE("versions of TLS before 1.2 are refused") {
  const ServedByTls served;
  const auto with = [&](int newest) {
    return TlsClient(served.server_->port(), served.files_.certificate, "node7.example", newest);
  };
  CHECK_FALSE(with(TLS1_1_VERSION).is_open());
  const TlsClient older = with(TLS1_2_VERSION);
  CHECK(older.is_open());
  CHECK(older.version() == "TLSv1.2");
  CHECK(with(TLS1_3_VERSION).version() == "TLSv1.3");
}

TEST_CASE(
    "clients that stop in the middle of TLS's greeting are dropped, and the others served on") {
  const ServedByTls served({.request = std::chrono::seconds(1)});
  std::vector<FileDescriptor> silent;
  const std::string begun("\x16\x03\x01\x02", 4);
  for (int i = 0; i < 20; ++i) {
    silent.push_back(connected_to(served.server_->port()));
    if (i % 2 == 0) send(silent.back().get(), begun.data(), begun.size(), MSG_NOSIGNAL);
  }
  const FileDescriptor noise = connected_to(served.server_->port());
  const std::string random(4096, '\xa5');
  send(noise.get(), random.data(), random.size(), MSG_NOSIGNAL);
  char byte = 0;
  for (const FileDescriptor& one : silent) CHECK(read(one.get(), &byte, 1) <= 0);
  CHECK(has_status(served.ask(served.get("/", served.cookie())), 200));
}

TEST_CASE("an address of other machines without certificate and key is refused with the remedy") {
  const testing::TemporaryFolder folder;
  testing::begin_experiment(folder.path());
  const auto refused = [&](const ServerOptions& options) {
    return testing::refusal([&] { Server(options, Storage(folder.path())); });
  };
  for (const char* address : {"0.0.0.0", "::", "192.0.2.1", "10.1.2.3"}) {
    CAPTURE(address);
    CHECK_HAS(refused({.address = address}), "--certificate FILE and --key FILE");
    CHECK_HAS(refused({.address = address}), "ssh -L");
  }
  for (const char* address : {"0.0.0.0", "127.0.0.1"}) {
    CHECK_HAS(refused({.address = address, .tls = {"page.crt", ""}}), "go together");
    CHECK_HAS(refused({.address = address, .tls = {"", "page.key"}}), "go together");
  }
  CHECK_HAS(refused({.address = "evil.example", .tls = {"a", "b"}}), "is not an IP address");
}

TEST_CASE("a certificate or key that cannot serve is refused by its name") {
  const testing::TemporaryFolder folder;
  const auto in = [&](const char* name) { return (folder.path() / name).string(); };
  const testing::Key key = testing::made_key();
  testing::write_certificate(key, in("good.crt"));
  testing::write_key(key, in("good.key"));
  const auto refused = [&](const std::string& certificate, const std::string& of_key) {
    return testing::refusal([&] { Tls({certificate, of_key}); });
  };
  CHECK_NOTHROW(Tls({in("good.crt"), in("good.key")}));
  CHECK_HAS(refused(in("none.crt"), in("good.key")), in("none.crt"));
  CHECK_HAS(refused(in("good.crt"), in("none.key")), in("none.key"));
  testing::write_text(folder.path() / "words.pem", "these are words\n");
  CHECK_HAS(refused(in("words.pem"), in("good.key")), "--certificate " + in("words.pem"));
  CHECK_HAS(refused(in("words.pem"), in("good.key")), "not a certificate in PEM");
  CHECK_HAS(refused(in("good.crt"), in("words.pem")), "--key " + in("words.pem"));
  testing::write_key(testing::made_key(), in("other.key"));
  CHECK_HAS(refused(in("good.crt"), in("other.key")), "is not the key of " + in("good.crt"));
  testing::write_key(key, in("locked.key"), "secret");
  CHECK_HAS(refused(in("good.crt"), in("locked.key")), "behind a password");
  testing::write_certificate(key, in("old.crt"), {.seconds = -60});
  CHECK_HAS(refused(in("old.crt"), in("good.key")), "its time is over");
  testing::write_certificate(key, in("nameless.crt"), {.names = ""});
  CHECK_HAS(refused(in("nameless.crt"), in("good.key")), "subjectAltName");
}

TEST_CASE("the names of a certificate are hosts as browsers write them") {
  const testing::TemporaryFolder folder;
  const Tls tls(testing::write_identity(
      folder.path(),
      {.names = "DNS:Node7.Example,DNS:*.pool.example,IP:10.0.0.7,IP:2001:db8::7,email:a@b"}));
  CHECK(tls.names() ==
        std::vector<std::string>{"node7.example", "*.pool.example", "10.0.0.7", "[2001:db8::7]"});
}

// ---- The guard ----------------------------------------------------------------------------------

const Guard kPublic("t0ken", "s3ssion",
                    {.port = 8311,
                     .is_tls = true,
                     .names = {"node7.example", "*.pool.example", "10.0.0.7", "[2001:db8::7]"}});

Asked asked_by(const std::string& host, const std::string& origin = {}) {
  Asked request;
  request.method = "GET";
  request.target = "/api/experiments";
  request.hosts = {host};
  request.cookies = "tune-view-8311=s3ssion";
  if (!origin.empty()) request.origins = {origin};
  return request;
}

TEST_CASE("by TLS the page answers to the names of its certificate and to loopback's") {
  for (const char* host :
       {"node7.example:8311", "node7.example", "NODE7.example:443", "a.pool.example:8311",
        "10.0.0.7:8311", "[2001:db8::7]:8311", "localhost:9000", "127.0.0.1:8311", "[::1]:8311"}) {
    CAPTURE(host);
    CHECK(kPublic.check(asked_by(host)).kind == Pass::Kind::kGranted);
    CHECK(kPublic.check(asked_by(host, "https://" + std::string(host))).kind ==
          Pass::Kind::kGranted);
    CHECK(kPublic.check(asked_by(host, "http://" + std::string(host))).status == 403);
  }
}

TEST_CASE("by TLS other names are refused, as are those that only look like the certificate's") {
  for (const char* host :
       {"evil.example", "node7.example.evil.example", "xnode7.example", "node7.example:", "",
        "node7.example:8x", "pool.example", ".pool.example", "a.b.pool.example", "*.pool.example.x",
        "10.0.0.70", "10.0.0.7.evil.example", "[2001:db8::70]", "[2001:db8::7", "2001:db8::7",
        "node7.example@evil.example", "[2001:db8::7]evil.example"}) {
    CAPTURE(host);
    const Pass pass = kPublic.check(asked_by(host));
    CHECK(pass.kind == Pass::Kind::kRefused);
    CHECK(pass.status == 403);
  }
}

TEST_CASE("without TLS a name of other machines never counts") {
  const Guard guard("t0ken", "s3ssion", {.port = 8311});
  CHECK(guard.check(asked_by("node7.example:8311")).status == 403);
  CHECK(guard.cookie().find("Secure") == std::string::npos);
  CHECK(kPublic.cookie().ends_with("; Secure"));
}

}  // namespace
}  // namespace tune::view
