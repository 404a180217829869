#include "tune/view/guard.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace tune::view {

namespace {

Pass no_pass(int status, std::string why) {
  return {Pass::Kind::kRefused, status, std::move(why)};
}

bool is_port(std::string_view text) {
  if (text.empty() || text.size() > 5) return false;
  return text.find_first_not_of("0123456789") == text.npos;
}

// "node7:8311" is "node7", "[::1]:80" is "[::1]"; empty: the port is none, or a bracket is open.
std::string_view without_port(std::string_view host) {
  const std::size_t end = host.starts_with('[') ? host.find(']') + 1 : host.find(':');
  if (end == 0) return {};
  const std::string_view rest = host.substr(std::min(end, host.size()));
  if (!rest.empty() && !(rest.starts_with(':') && is_port(rest.substr(1)))) return {};
  return host.substr(0, end);
}

bool is_plain_target(std::string_view target) {
  if (!target.starts_with('/') || target.find("..") != target.npos) return false;
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-?=&,";
  return target.find_first_not_of(kLetters) == target.npos;
}

}  // namespace

bool is_loopback_name(std::string_view host) {
  const std::string_view name = without_port(host);
  return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

std::string small_letters(std::string_view name) {
  std::string small(name);
  for (char& c : small) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return small;
}

bool is_same_secret(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return different == 0;
}

std::string drawn_secret() {
  std::array<unsigned char, 16> bytes{};
  ssize_t count = 0;
  do {
    count = getrandom(bytes.data(), bytes.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count != static_cast<ssize_t>(bytes.size())) {
    throw Error(ErrorCode::kIo, "drawing a secret: the system gives no random numbers");
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

Guard::Guard(std::string token, std::string session, GuardRules rules)
    : token_(std::move(token)),
      session_(std::move(session)),
      cookie_name_(fmt::format("tune-view-{}", rules.port)),
      rules_(std::move(rules)) {}

std::string Guard::cookie() const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict{}", cookie_name_, session_,
                     rules_.is_tls ? "; Secure" : "");
}

bool Guard::is_own_name(std::string_view host) const {
  if (is_loopback_name(host)) return true;
  const std::string name = small_letters(without_port(host));
  const std::size_t dot = name.find('.');
  return std::any_of(rules_.names.begin(), rules_.names.end(), [&](std::string_view known) {
    if (!known.starts_with("*.")) return !name.empty() && name == known;
    return dot != name.npos && dot > 0 && std::string_view(name).substr(dot) == known.substr(1);
  });
}

bool Guard::has_cookie(std::string_view cookies) const {
  while (!cookies.empty()) {
    const std::size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (!one.starts_with(cookie_name_)) continue;
    one.remove_prefix(cookie_name_.size());
    if (one.starts_with('=') && is_same_secret(one.substr(1), session_)) return true;
  }
  return false;
}

Pass Guard::check_origin(const Asked& asked) const {
  if (asked.hosts.size() != 1) return no_pass(400, "a request has exactly one Host");
  if (!is_own_name(asked.hosts.front())) {
    return no_pass(403, rules_.is_tls ? "this page is asked for by a name of its certificate only"
                                      : "this page is asked for by 127.0.0.1 or localhost only");
  }
  const std::string own = (rules_.is_tls ? "https://" : "http://") + asked.hosts.front();
  for (const std::string& origin : asked.origins) {
    if (origin != own) return no_pass(403, "the Origin is another site");
  }
  const bool is_navigation = asked.fetch_mode == "navigate";
  if (asked.fetch_site == "cross-site" && !is_navigation) {
    return no_pass(403, "another site may not ask");
  }
  return {Pass::Kind::kGranted};
}

// After check_origin: an Origin that is there is the page's own.
Pass Guard::check_order(const Asked& asked) const {
  if (!rules_.control)
    return no_pass(403, "this page only reads: tune view --control changes sweeps");
  if (asked.origins.size() != 1) return no_pass(403, "an order names its Origin, once");
  if (!asked.fetch_site.empty() && asked.fetch_site != "same-origin") {
    return no_pass(403, "another site may not order");
  }
  if (asked.content_type != "application/json") return no_pass(415, "an order is JSON");
  if (!has_cookie(asked.cookies)) {
    return no_pass(403, "open the address with the token that tune view printed when it began");
  }
  return {Pass::Kind::kGranted, 200};
}

Pass Guard::check(const Asked& asked) const {
  if (Pass pass = check_origin(asked); pass.kind == Pass::Kind::kRefused) return pass;
  if (asked.method == "POST" && asked.target == kOrderTarget) return check_order(asked);
  if (asked.method != "GET" && asked.method != "HEAD") {
    return no_pass(405, "only GET and HEAD: this page reads");
  }
  if (asked.target.size() > kMaxTargetBytes) return no_pass(414, "the address is too long");
  if (!is_plain_target(asked.target))
    return no_pass(400, "the address has other letters than this page's");
  constexpr std::string_view kExchange = "/?token=";
  if (asked.target.starts_with(kExchange)) {
    const auto given = std::string_view(asked.target).substr(kExchange.size());
    if (is_same_secret(given, token_)) return {Pass::Kind::kExchange, 200};
    return no_pass(403, "the token is not this server's: open the address that it printed");
  }
  if (asked.target == "/metrics") {
    constexpr std::string_view kBearer = "Bearer ";
    const std::string_view given = asked.authorization;
    if (given.starts_with(kBearer) && is_same_secret(given.substr(kBearer.size()), token_)) {
      return {Pass::Kind::kGranted, 200};
    }
    return no_pass(401, "/metrics wants the token: Authorization: Bearer TOKEN");
  }
  if (!has_cookie(asked.cookies)) {
    return no_pass(403, "open the address with the token that tune view printed when it began");
  }
  return {Pass::Kind::kGranted, 200};
}

}  // namespace tune::view
