// HTTP requests to services outside, by libcurl. It is loaded when the first one is made: linked,
// it and some twenty libraries of its own (TLS, Kerberos, LDAP, compressions) would be loaded by
// every command and every agent, which start in milliseconds, and carried by every package; and
// most sweeps ask nobody.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

struct HttpRequest {
  std::string method = "GET";
  std::string url;                        // http or https
  std::vector<std::string> headers = {};  // "Content-Type: application/json"
  std::string body = {};
  std::string_view lent_body = {};       // sent instead of `body`; the caller keeps it
  std::filesystem::path body_file = {};  // sent instead of `body`, by PUT; empty: none
  std::string user = {};                 // "name:password"; empty: none
  std::string ca_file = {};              // of certificates to trust; empty: the machine's
  std::chrono::milliseconds limit{10'000};
  std::chrono::milliseconds connect_limit{0};  // 0: `limit`
  std::chrono::seconds stall_limit{0};         // without a byte, then it ends; 0: any
};

struct HttpAnswer {
  long status = 0;        // 200; 0: there was no answer, for `error`
  std::string body = {};  // at most kMaxHttpBytes of it
  std::string error = {};
  bool is_good() const { return status >= 200 && status < 300; }
};

inline constexpr std::size_t kMaxHttpBytes = 16u << 20;

// Waits for the answer, at most the request's limit. Redirections are not followed, as they would
// carry the request, and what is secret in it, to another place. Never throws.
HttpAnswer ask_http(const HttpRequest& request);

// Requests one after another, over one connection where the service keeps it. For one thread.
class HttpConnection {
 public:
  HttpConnection() = default;
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;

  // As ask_http. Ends early, without an answer, when `abandoned` becomes true.
  HttpAnswer ask(const HttpRequest& request, const std::atomic<bool>* abandoned = nullptr);

 private:
  void* handle_ = nullptr;  // made at the first request
};

// Scheme and host of an address: what may be shown, as the rest may be secret.
std::string shown_address(const std::string& url);

}  // namespace tune
