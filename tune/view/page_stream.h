// PageStream: the bytes of one connection, plain or by TLS, as one type. HTTP's code is a template
// of its stream; with a stream of each kind it would be compiled twice, 17 s each time.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <chrono>
#include <utility>
#include <variant>

namespace tune::view {

class PageStream {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;

  // By TLS, if there is a context, which outlives this.
  PageStream(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls)
      : kind_(made(std::move(socket), tls)) {}

  bool is_tls() const { return std::holds_alternative<Encrypted>(kind_); }
  executor_type get_executor() { return plain().get_executor(); }
  // Of reads and writes that begin later; one that takes longer closes the connection.
  void expires_after(std::chrono::seconds time) { plain().expires_after(time); }
  void expires_never() { plain().expires_never(); }
  // For the answer to a client that does not speak TLS.
  boost::asio::ip::tcp::socket& socket() { return plain().socket(); }

  // Of TLS only.
  template <class Handler>
  void async_handshake(Handler&& handler) {
    std::get<Encrypted>(kind_).async_handshake(boost::asio::ssl::stream_base::server,
                                               std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    std::visit(
        [&](auto& stream) { stream.async_read_some(buffers, std::forward<Handler>(handler)); },
        kind_);
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    std::visit(
        [&](auto& stream) { stream.async_write_some(buffers, std::forward<Handler>(handler)); },
        kind_);
  }

  // Answers tell their length, so that TLS needs no parting word for a client to know the end.
  void close() {
    boost::system::error_code ignored;
    socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
    plain().close();
  }

 private:
  using Plain = boost::beast::tcp_stream;
  using Encrypted = boost::beast::ssl_stream<Plain>;
  using Kind = std::variant<Plain, Encrypted>;

  static Kind made(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls) {
    if (tls == nullptr) return Plain(std::move(socket));
    return Encrypted(Plain(std::move(socket)), *tls);
  }
  Plain& plain() {
    if (Plain* plain = std::get_if<Plain>(&kind_)) return *plain;
    return std::get<Encrypted>(kind_).next_layer();
  }

  Kind kind_;
};

}  // namespace tune::view
