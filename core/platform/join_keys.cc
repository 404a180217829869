#include "core/platform/join_keys.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <zmq.h>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/platform/files.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kZ85Bytes = 41;  // of a key, with its end

struct Pair {
  std::string public_key;
  std::string secret_key;
};

std::string bytes_of_z85(const char* text) {
  std::array<std::uint8_t, kCurveKeyBytes> bytes{};
  TUNE_CHECK(::zmq_z85_decode(bytes.data(), text) != nullptr);
  return {bytes.begin(), bytes.end()};
}

Pair make_pair() {
  std::array<char, kZ85Bytes> public_key{};
  std::array<char, kZ85Bytes> secret_key{};
  if (::zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("making keys for machines that join: {}: this "
                                                 "libzmq was built without CURVE",
                                                 ::zmq_strerror(errno)));
  }
  return {bytes_of_z85(public_key.data()), bytes_of_z85(secret_key.data())};
}

void expect_private(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) throw file_error("reading", file, errno);
  if ((status.st_mode & 077) == 0) return;
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("reading {}: others may read it (mode {:o}), and it holds keys: chmod 600 "
                  "it, and replace the keys with `tune token --rotate` if others have",
                  file.string(), status.st_mode & 0777));
}

// Another user has made it for a group of ours to read, as Kubernetes makes a Secret's file for a
// container that does not run as root.
bool was_given(const fs::path& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 && status.st_uid != ::geteuid() &&
         (status.st_mode & 037) == 0;
}

fs::path file_of(const fs::path& experiment) {
  return experiment / "keys.json";
}

std::string key_of(const std::string& text, const char* name) {
  std::string key = bytes_of_base64url(text);
  if (key.size() == kCurveKeyBytes) return key;
  throw Error(ErrorCode::kBadInput, fmt::format("{} is not a key", name));
}

std::string key_in(const Value& map, const char* name) {
  return key_of(map.get<std::string>(name), name);
}

constexpr const char* kFormer = "former_join_public";

// A build before keys were let go one by one wrote none.
std::vector<std::string> former_in(const Value& map) {
  std::vector<std::string> keys;
  if (!map.contains(kFormer)) return keys;
  for (const std::string& text : map.get<std::vector<std::string>>(kFormer)) {
    keys.push_back(key_of(text, kFormer));
  }
  return keys;
}

}  // namespace

std::string public_key_of(const std::string& secret_key) {
  std::array<char, kZ85Bytes> secret{};
  std::array<char, kZ85Bytes> own{};
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(secret_key.data());
  const bool is_made = secret_key.size() == kCurveKeyBytes &&
                       ::zmq_z85_encode(secret.data(), bytes, secret_key.size()) != nullptr &&
                       ::zmq_curve_public(own.data(), secret.data()) == 0;
  if (is_made) return bytes_of_z85(own.data());
  throw Error(ErrorCode::kBadInput, "reading the token: its join key is not a key");
}

JoinKeys make_keys() {
  Pair driver = make_pair();
  JoinKeys keys{std::move(driver.public_key), std::move(driver.secret_key), {}, {}, {},
                make_pair().secret_key};
  replace_join_key(keys);
  return keys;
}

void replace_join_key(JoinKeys& keys) {
  Pair join = make_pair();
  if (!keys.join_public.empty()) keys.former.push_back(std::move(keys.join_public));
  keys.join_public = std::move(join.public_key);
  keys.join_secret = std::move(join.secret_key);
}

namespace {

std::optional<JoinKeys> keys_in(const fs::path& file) {
  if (!fs::exists(file)) return std::nullopt;
  expect_private(file);
  const Value map = parse_json(read_file(file), file.string());
  try {
    // A build before there were groups over several nodes wrote none.
    const bool has_group_key = map.contains("group_secret");
    return JoinKeys{key_in(map, "driver_public"),
                    key_in(map, "driver_secret"),
                    key_in(map, "join_public"),
                    key_in(map, "join_secret"),
                    map.get<std::vector<std::string>>("addresses"),
                    has_group_key ? key_in(map, "group_secret") : make_pair().secret_key,
                    map.get_or("relay_port", 0),
                    former_in(map)};
  } catch (const Error& error) {
    throw Error(ErrorCode::kBadInput, fmt::format("reading {}: {}: remove it to make new keys",
                                                  file.string(), error.what()));
  }
}

void write_to(const fs::path& file, const JoinKeys& keys) {
  std::vector<std::string> former;
  for (const std::string& key : keys.former) former.push_back(base64url(key));
  const Value map{{"driver_public", base64url(keys.driver_public)},
                  {"driver_secret", base64url(keys.driver_secret)},
                  {"join_public", base64url(keys.join_public)},
                  {"join_secret", base64url(keys.join_secret)},
                  {"group_secret", base64url(keys.group_secret)},
                  {"addresses", keys.addresses},
                  {"relay_port", keys.relay_port},
                  {kFormer, former}};
  write_file_atomically(file, to_json(map, 2) + "\n", Readers::kOwnerOnly);
}

}  // namespace

std::optional<JoinKeys> read_keys(const fs::path& experiment) {
  return keys_in(file_of(experiment));
}

void write_keys(const fs::path& experiment, const JoinKeys& keys) {
  write_to(file_of(experiment), keys);
}

JoinKeys shared_keys(const fs::path& file) {
  if (std::optional<JoinKeys> kept = keys_in(file)) return std::move(*kept);
  const JoinKeys keys = make_keys();
  write_to(file, keys);
  return keys;
}

JoinToken token_of(const JoinKeys& keys, const std::string& experiment_id) {
  return {experiment_id, keys.driver_public, keys.join_secret, keys.addresses};
}

JoinToken read_token(const fs::path& file) {
  if (!was_given(file)) expect_private(file);
  return token_of_text(read_file(file));
}

std::vector<Interface> network_interfaces() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) {
    throw Error(ErrorCode::kProcess, fmt::format("listing interfaces: {}", ::zmq_strerror(errno)));
  }
  std::vector<Interface> found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    const int family = one->ifa_addr->sa_family;
    const void* address = nullptr;
    if (family == AF_INET) address = &reinterpret_cast<sockaddr_in*>(one->ifa_addr)->sin_addr;
    if (family == AF_INET6) {
      const auto* v6 = reinterpret_cast<sockaddr_in6*>(one->ifa_addr);
      if (!IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) address = &v6->sin6_addr;
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address == nullptr || ::inet_ntop(family, address, text.data(), text.size()) == nullptr) {
      continue;
    }
    found.push_back({one->ifa_name, text.data(), (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  ::freeifaddrs(all);
  return found;
}

}  // namespace tune
