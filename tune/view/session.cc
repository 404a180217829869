#include "tune/view/session.h"

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"
#include "tune/view/page_stream.h"
#include "tune/view/pages.h"
#include "tune/view/request.h"

namespace tune::view {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr std::size_t kPieceBytes = 256u << 10;
constexpr std::chrono::seconds kBeatEvery{15};

using Response = http::response<http::span_body<const char>>;

std::string text_of(const Request& request, http::field field) {
  return std::string(request[field]);
}

// The fields of every answer, whatever it is.
template <class Message>
void add_common(Message& message) {
  message.set("Content-Security-Policy",
              "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
  message.set(http::field::x_frame_options, "DENY");
  message.set("X-Content-Type-Options", "nosniff");
  message.set("Referrer-Policy", "no-referrer");
  message.set("Cross-Origin-Resource-Policy", "same-origin");
  message.set("Cross-Origin-Opener-Policy", "same-origin");
}

std::string event_of(const std::map<std::string, std::uint64_t>& changes, const std::string& boot) {
  Value::List keys;
  std::uint64_t newest = 0;
  for (const auto& [key, change] : changes) {
    keys.emplace_back(key);
    newest = std::max(newest, change);
  }
  return fmt::format("id: {}-{}\nevent: change\ndata: {}\n\n", boot, newest,
                     to_json(Value::make_list(std::move(keys))));
}

// An answer without a session, as far as the system takes it at once.
void tell_and_leave(asio::ip::tcp::socket& socket, std::string_view status,
                    std::string_view words) {
  const std::string answer = fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      status, words.size(), words);
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(answer), ignored);
}

}  // namespace

// A client that does not take what it is sent has nothing kept for it but the names of experiments
// that changed.
class StreamingSession : public std::enable_shared_from_this<StreamingSession> {
 public:
  StreamingSession(PageStream stream, Shared& shared)
      : stream_(std::move(stream)), shared_(shared), beat_(stream_.get_executor()) {
    shared_.streams.insert(this);
    ++shared_.connections;
    shared_.worker->set_watched(true);
  }
  ~StreamingSession() {
    shared_.streams.erase(this);
    --shared_.connections;
    shared_.worker->set_watched(!shared_.streams.empty());
  }

  void begin(std::string head, std::optional<std::uint64_t> since) {
    out_ = std::move(head);
    out_ += fmt::format("retry: 1000\nevent: hello\ndata: {{\"boot\":\"{}\"}}\n\n", shared_.boot);
    for (const auto& [key, change] : shared_.changes) {
      if (since && change > *since) pending_[key] = change;
    }
    await_end();
    write();
    beat();
  }

  // `event`: the words for these changes, which are made once for all streams.
  void told(const std::map<std::string, std::uint64_t>& changes, const std::string& event) {
    if (!is_writing_ && pending_.empty()) {
      out_ += event;
      return write();
    }
    for (const auto& [key, change] : changes) pending_[key] = change;
    if (!is_writing_) flush();
  }

 private:
  void flush() {
    if (pending_.empty()) return;
    out_ += event_of(pending_, shared_.boot);
    pending_.clear();
    write();
  }

  void write() {
    is_writing_ = true;
    stream_.expires_after(shared_.patience.write);
    asio::async_write(stream_, asio::buffer(out_),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        self->is_writing_ = false;
                        self->out_.clear();
                        if (error) return self->close();
                        self->flush();
                      });
  }

  // A client that sends anything, or closes, is done with. Before the first write, so that this
  // waits for ever: a limit of time would count for both.
  void await_end() {
    stream_.expires_never();
    stream_.async_read_some(
        asio::buffer(in_), [self = shared_from_this()](error_code, std::size_t) { self->close(); });
  }

  void beat() {
    beat_.expires_after(kBeatEvery);
    beat_.async_wait([weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      if (error || !self) return;
      if (!self->is_writing_) {
        self->out_ = ": still here\n\n";
        self->write();
      }
      self->beat();
    });
  }

  void close() {
    stream_.close();
    beat_.cancel();
  }

  PageStream stream_;
  Shared& shared_;
  asio::steady_timer beat_;
  std::string out_;
  char in_[1] = {};
  bool is_writing_ = false;
  std::map<std::string, std::uint64_t> pending_;
};

void Shared::note(const std::vector<std::string>& keys, std::uint64_t change) {
  for (const std::string& key : keys) changes[key] = untold[key] = change;
}

bool Shared::pass_on() {
  if (untold.empty()) return false;
  const std::string event = event_of(untold, boot);
  for (StreamingSession* stream : streams) stream->told(untold, event);
  untold.clear();
  return true;
}

namespace {

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(asio::ip::tcp::socket socket, Shared& shared)
      : stream_(std::move(socket), shared.tls), shared_(shared) {
    ++shared_.connections;
  }
  ~Session() { --shared_.connections; }

  void begin() {
    if (!stream_.is_tls()) return read(shared_.patience.request);
    stream_.expires_after(shared_.patience.request);
    stream_.async_handshake([self = shared_from_this()](error_code error) {
      if (error) return self->refuse_handshake(error);
      self->read(self->shared_.patience.request);
    });
  }

 private:
  // A client that spoke plain HTTP is told so in plain HTTP.
  void refuse_handshake(error_code error) {
    const bool is_plain =
        error.category() == asio::error::get_ssl_category() &&
        ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_HTTP_REQUEST;
    if (is_plain) {
      tell_and_leave(stream_.socket(), "400 Bad Request", "this page is served by https only\n");
    }
    close();
  }

  void read(std::chrono::seconds patience) {
    parser_.emplace();
    set_limits(*parser_, shared_.guard->allows_orders());
    stream_.expires_after(patience);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_read(error); });
  }

  void on_read(error_code error) {
    if (error == http::error::end_of_stream || error == beast::error::timeout) return close();
    if (error.category() == http::make_error_code(http::error::bad_method).category()) {
      return refuse_words(error);
    }
    if (error) return close();
    const Request& request = parser_->get();
    is_head_ = request.method() == http::verb::head;
    keeps_ = request.keep_alive();
    version_ = request.version();
    const Pass pass = shared_.guard->check(asked_of(request));
    switch (pass.kind) {
      case Pass::Kind::kRefused:
        return send({.status = pass.status, .type = kText, .body = text(pass.why + "\n")});
      case Pass::Kind::kExchange:
        cookie_ = shared_.guard->cookie();
        return send({.status = 200, .type = kHtml, .body = text(kWelcome)});
      case Pass::Kind::kGranted:
        return answer(request);
    }
  }

  // Words that are not a request: nothing after them can be trusted to be one.
  void refuse_words(error_code error) {
    keeps_ = false;
    is_head_ = false;
    version_ = 11;
    if (error == http::error::header_limit) {
      return send({.status = 431, .type = kText, .body = text("the header is too long\n")});
    }
    if (error == http::error::unexpected_body || error == http::error::body_limit) {
      const char* why = shared_.guard->allows_orders()
                            ? "the body is too long\n"
                            : "this page only reads: tune view --control changes sweeps\n";
      return send({.status = 413, .type = kText, .body = text(why)});
    }
    send({.status = 400, .type = kText, .body = text("this is not a request\n")});
  }

  void answer(const Request& request) {
    const std::string target(request.target());
    if (request.method() == http::verb::post) return order(request.body());
    if (target == "/api/stream" && !is_head_) return stream(request);
    const bool takes_gzip =
        request[http::field::accept_encoding].find("gzip") != beast::string_view::npos;
    if (!target.starts_with("/api/") && target != "/metrics") {
      const std::string_view path = std::string_view(target).substr(0, target.find('?'));
      return send(page_file(path, takes_gzip, text_of(request, http::field::if_none_match)));
    }
    shared_.worker->ask({.target = target,
                         .known_etag = text_of(request, http::field::if_none_match),
                         .takes_gzip = takes_gzip},
                        answer_later());
  }

  void order(std::string body) { shared_.worker->order(std::move(body), answer_later()); }

  // The worker may answer after this session is gone: its own executor outlives both.
  Worker::Done answer_later() {
    shared_.waiting.insert(shared_from_this());  // nothing else holds it meanwhile
    return [weak = weak_from_this(), executor = stream_.get_executor()](Reply reply) {
      asio::post(executor, [weak, reply = std::move(reply)]() mutable {
        if (const auto self = weak.lock()) self->send(std::move(reply));
      });
    };
  }

  void stream(const Request& request) {
    std::optional<std::uint64_t> since;
    const std::string last(request["Last-Event-ID"]);
    const std::string own = shared_.boot + "-";
    std::uint64_t number = 0;
    if (last.starts_with(own) &&
        std::from_chars(last.data() + own.size(), last.data() + last.size(), number).ec ==
            std::errc()) {
      since = number;
    } else if (!last.empty()) {
      since = 0;  // of an earlier start: all is new
    }
    http::response<http::empty_body> head(http::status::ok, 11);
    add_common(head);
    head.set(http::field::content_type, "text/event-stream");
    head.set(http::field::cache_control, "no-store");
    head.keep_alive(false);
    std::ostringstream words;
    words << head.base();
    std::make_shared<StreamingSession>(std::move(stream_), shared_)->begin(words.str(), since);
  }

  void send(Reply reply) {
    shared_.waiting.erase(shared_from_this());
    reply_ = std::move(reply);
    if (!reply_.body) reply_.body = std::make_shared<const std::string>();
    response_.emplace(static_cast<http::status>(reply_.status), version_);
    add_common(*response_);
    if (!reply_.type.empty()) response_->set(http::field::content_type, reply_.type);
    if (reply_.is_gzip) response_->set(http::field::content_encoding, "gzip");
    response_->set(http::field::vary, "Accept-Encoding");
    response_->set(http::field::cache_control, reply_.etag.empty() ? "no-store" : "no-cache");
    if (!reply_.etag.empty()) response_->set(http::field::etag, reply_.etag);
    if (reply_.status == 405) response_->set(http::field::allow, "GET, HEAD");
    if (!cookie_.empty()) response_->set(http::field::set_cookie, std::exchange(cookie_, {}));
    response_->keep_alive(keeps_);
    response_->content_length(reply_.status == 304 ? 0 : reply_.body->size());
    if (!is_head_ && reply_.status != 304)
      response_->body() = {reply_.body->data(), reply_.body->size()};
    serializer_.emplace(*response_);
    serializer_->limit(kPieceBytes);
    if (is_head_) serializer_->split(true);
    write();
  }

  // Piece by piece: a slow reader is one that takes no piece in time, not one of a large answer.
  void write() {
    stream_.expires_after(shared_.patience.write);
    const auto written = [self = shared_from_this()](error_code error, std::size_t) {
      if (error) return self->close();
      const bool is_done =
          self->is_head_ ? self->serializer_->is_header_done() : self->serializer_->is_done();
      if (!is_done) return self->write();
      self->serializer_.reset();
      self->response_.reset();
      self->reply_ = {};
      if (!self->keeps_) return self->close();
      self->read(self->shared_.patience.idle);
    };
    if (is_head_) {
      http::async_write_header(stream_, *serializer_, written);
    } else {
      http::async_write_some(stream_, *serializer_, written);
    }
  }

  void close() { stream_.close(); }

  static constexpr const char* kText = "text/plain; charset=utf-8";
  static constexpr const char* kHtml = "text/html; charset=utf-8";
  static std::shared_ptr<const std::string> text(std::string words) {
    return std::make_shared<const std::string>(std::move(words));
  }

  PageStream stream_;
  Shared& shared_;
  beast::flat_buffer buffer_{kMaxHeaderBytes + 4096};
  std::optional<RequestParser> parser_;
  bool is_head_ = false, keeps_ = false;
  unsigned version_ = 11;
  std::string cookie_;
  Reply reply_;
  std::optional<Response> response_;
  std::optional<http::response_serializer<http::span_body<const char>>> serializer_;
};

}  // namespace

void begin_session(asio::ip::tcp::socket socket, Shared& shared) {
  std::make_shared<Session>(std::move(socket), shared)->begin();
}

void turn_away(asio::ip::tcp::socket socket, std::size_t connections) {
  tell_and_leave(
      socket, "503 Service Unavailable",
      fmt::format("{} connections are open, as many as this server takes: close pages that nobody "
                  "looks at, or start another `tune view` with --port 0\n",
                  connections));
}

}  // namespace tune::view
