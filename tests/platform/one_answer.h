// A web server that answers one request, with fixed bytes (none: it stays silent), in a thread.
#pragma once

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "listener.h"

namespace tune::testing {

inline bool has_libcurl() {
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (dlopen(name, RTLD_NOW) != nullptr) return true;
  }
  return false;
}

class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : answer_(std::move(answer)) {
    const auto [listener, port] = listen_on_this_host(1);
    listener_ = listener;
    port_ = port;
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswer() { end(); }
  OneAnswer(const OneAnswer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // The request, once the answer is given.
  const std::string& request() {
    end();
    return request_;
  }

 private:
  void end() {
    if (!thread_.joinable()) return;
    shutdown(listener_, SHUT_RDWR);  // when nobody has come
    thread_.join();
    close(listener_);
  }
  void serve() {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    char bytes[4096];
    while (!is_whole()) {
      const ssize_t count = read(client, bytes, sizeof bytes);
      if (count <= 0) break;
      request_.append(bytes, static_cast<std::size_t>(count));
    }
    if (answer_.empty()) {
      while (read(client, bytes, sizeof bytes) > 0) continue;  // until the other side gives up
    } else if (write(client, answer_.data(), answer_.size()) < 0) {
      request_ += " (no answer)";
    }
    close(client);
  }
  bool is_whole() const {
    const std::size_t head = request_.find("\r\n\r\n");
    if (head == request_.npos) return false;
    const std::size_t length = request_.find("Content-Length: ");
    const int body = length == request_.npos ? 0 : std::atoi(request_.c_str() + length + 16);
    return request_.size() >= head + 4 + static_cast<std::size_t>(body);
  }

  std::string answer_;
  std::string request_;
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace tune::testing
