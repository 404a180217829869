// Guard: who may ask the page's server, and what. Closed by default: every refusal of a request
// that needs no file is made here. Pure.
//
// The page is served on loopback, where any process of the machine and, through DNS rebinding, any
// web site that the user visits can reach it. So: a Host that is not a loopback name is refused
// (rebinding keeps the site's own name there), an Origin that is not the page's own is refused
// whatever the method (refusing POST alone is how others were evaded), and everything needs the
// cookie that the random token of the printed address is exchanged for. Nothing is changed but by
// POST to kOrderTarget, when the server was told so (--control): it needs the page's own Origin
// there, and JSON, which no form of another site can send.
//
// By TLS the page may be asked for from other machines as well. Then the names of its certificate
// join those of loopback, its Origin is https, and its cookie never travels without TLS.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tune::view {

inline constexpr std::size_t kMaxTargetBytes = 2048;
inline constexpr std::string_view kOrderTarget = "/api/order";

// A request's words, as they came.
struct Asked {
  std::string method;
  std::string target;
  std::vector<std::string> hosts;    // every Host header
  std::vector<std::string> origins;  // every Origin header
  std::string cookies;
  std::string authorization;
  std::string fetch_site;  // Sec-Fetch-Site
  std::string fetch_mode;  // Sec-Fetch-Mode
  std::string content_type = {};
};

struct Pass {
  enum class Kind { kGranted, kExchange, kRefused };
  Kind kind = Kind::kRefused;
  int status = 403;  // of a refusal
  std::string why = {};
};

struct GuardRules {
  std::uint16_t port = 0;  // names the cookie
  bool control = false;
  bool is_tls = false;
  // Beside those of loopback, in small letters, as a Host has them without its port. "*.example" is
  // any name with one more part.
  std::vector<std::string> names = {};
};

class Guard {
 public:
  // The token stands in the address, the session in the cookie: a reader of a browser's history
  // has one of them without the other.
  Guard(std::string token, std::string session, GuardRules rules);

  Pass check(const Asked& asked) const;
  // Set-Cookie, once the token was right.
  std::string cookie() const;
  const std::string& token() const { return token_; }
  bool allows_orders() const { return rules_.control; }

 private:
  Pass check_order(const Asked& asked) const;
  Pass check_origin(const Asked& asked) const;
  bool has_cookie(std::string_view cookies) const;
  bool is_own_name(std::string_view host) const;

  std::string token_, session_, cookie_name_;
  GuardRules rules_;
};

// Whether it names this machine's loopback: 127.0.0.1, localhost or [::1], with any port, as the
// other end of an ssh forwarding has its own.
bool is_loopback_name(std::string_view host);
std::string small_letters(std::string_view name);  // of ASCII
// Takes as long for a text that is wrong at its first letter as for one that is so at its last.
bool is_same_secret(std::string_view a, std::string_view b);
// 128 random bits as 32 letters.
std::string drawn_secret();

}  // namespace tune::view
