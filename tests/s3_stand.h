// S3Stand: an object store that speaks S3, in memory, in threads of this process: what the tests of
// checkpoints in an object store talk to. It checks every signature, and can refuse, stall, break
// off and be full.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/s3_request.h"
#include "core/sha256.h"
#include "listener.h"

namespace tune::testing {

class S3Stand {
 public:
  struct Asked {
    std::string method, path;  // "/bucket/key", decoded
    std::map<std::string, std::string> query, headers;
    std::string target;  // as it stands in the request
    std::string body;
    std::string key() const {  // empty: of the bucket
      const std::size_t slash = path.find('/', 1);
      return slash == path.npos ? "" : path.substr(slash + 1);
    }
  };
  struct Answer {
    int status = 200;
    std::string body = {};
    bool breaks_off = false;           // the connection, without an answer
    std::size_t cut_after = SIZE_MAX;  // bytes of the answer, then it breaks off
  };
  static constexpr const char* kBucket = "checkpoints";
  static constexpr const char* kRegion = "eu-test-1";

  S3Stand() {
    const auto [listener, port] = listen_on_this_host(64);
    listener_ = listener;
    port_ = port;
    thread_ = std::thread([this] { accept_all(); });
  }
  ~S3Stand() {
    ends_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    {
      const std::lock_guard lock(mutex_);
      for (const int one : open_) shutdown(one, SHUT_RDWR);
    }
    for (std::thread& one : clients_) one.join();
  }
  S3Stand(const S3Stand&) = delete;

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  AwsCredentials credentials{"AKIDTEST", "a secret/+", ""};
  // The variables by which a process finds and uses it.
  std::map<std::string, std::string> environment() const {
    return {{"AWS_ACCESS_KEY_ID", credentials.key_id},
            {"AWS_SECRET_ACCESS_KEY", credentials.secret},
            {"AWS_SESSION_TOKEN", credentials.token},
            {"AWS_REGION", kRegion},
            {"AWS_ENDPOINT_URL", endpoint()}};
  }

  // Asked before a request is carried out; nothing: it is. Called by several threads, one at a
  // time.
  void answer_by(std::function<std::optional<Answer>(const Asked&)> how) {
    const std::lock_guard lock(mutex_);
    how_ = std::move(how);
  }
  // Every request is refused with this status and code from now on; 0: none.
  void refuse(int status, const std::string& code = "") {
    answer_by(status == 0 ? nullptr
                          : std::function<std::optional<Answer>(const Asked&)>(
                                [=](const Asked&) { return error(status, code); }));
  }
  static Answer error(int status, const std::string& code) {
    return {status, "<?xml version=\"1.0\"?>\n<Error><Code>" + code + "</Code><Message>it is " +
                        code + "</Message></Error>"};
  }

  std::map<std::string, std::string> objects() const {
    const std::lock_guard lock(mutex_);
    return objects_;
  }
  void put(const std::string& key, const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    objects_[key] = bytes;
  }
  std::vector<std::string> keys(const std::string& part = "") const {
    std::vector<std::string> found;
    for (const auto& [key, bytes] : objects()) {
      if (key.find(part) != key.npos) found.push_back(key);
    }
    return found;
  }
  std::vector<std::string> requests() const {  // "PUT /bucket/key"
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t connections() const { return connections_; }

 private:
  void accept_all() {
    for (;;) {
      const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      const std::lock_guard lock(mutex_);
      ++connections_;
      open_.push_back(client);
      clients_.emplace_back([this, client] {
        while (serve_one(client)) continue;
        const std::lock_guard held(mutex_);
        open_.remove(client);
        close(client);
      });
    }
  }

  bool serve_one(int client) {
    std::string text;
    std::size_t head = text.npos, body = 0;
    std::vector<char> bytes(1 << 16);
    Asked asked;
    while (head == text.npos || text.size() < head + 4 + body) {
      const ssize_t count = read(client, bytes.data(), bytes.size());
      if (count <= 0) return false;
      text.append(bytes.data(), static_cast<std::size_t>(count));
      if (head == text.npos && (head = text.find("\r\n\r\n")) != text.npos) {
        read_head(text.substr(0, head), asked);
        const auto length = asked.headers.find("content-length");
        if (length != asked.headers.end()) body = std::strtoul(length->second.c_str(), nullptr, 10);
      }
    }
    asked.body = text.substr(head + 4);
    Answer answer;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(asked.method + " " + asked.path);
      const std::string why = why_not_signed(asked);
      std::optional<Answer> told = how_ ? how_(asked) : std::nullopt;
      answer = told ? *told : why.empty() ? carried_out(asked) : error(403, why);
    }
    if (answer.breaks_off) return false;
    std::string said = "HTTP/1.1 " + std::to_string(answer.status) +
                       " x\r\nContent-Length: " + std::to_string(answer.body.size()) + "\r\n\r\n" +
                       answer.body;
    const bool is_cut = answer.cut_after < said.size();
    if (is_cut) said.resize(answer.cut_after);
    for (std::size_t sent = 0; sent < said.size();) {
      const ssize_t count = send(client, said.data() + sent, said.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    return !is_cut && !ends_;
  }

  static std::string decoded(const std::string& text) {
    std::string plain;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool is_code = text[i] == '%' && i + 2 < text.size();
      plain += is_code ? static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)) : text[i];
      if (is_code) i += 2;
    }
    return plain;
  }

  static void read_head(const std::string& head, Asked& asked) {
    const std::size_t line = std::min(head.find("\r\n"), head.size());
    const std::size_t first = head.find(' '), second = head.find(' ', first + 1);
    asked.method = head.substr(0, first);
    asked.target = head.substr(first + 1, second - first - 1);
    const std::size_t mark = asked.target.find('?');
    asked.path = decoded(asked.target.substr(0, mark));
    for (std::size_t at = mark; at < asked.target.size();) {
      const std::size_t end = std::min(asked.target.find('&', at + 1), asked.target.size());
      const std::string one = asked.target.substr(at + 1, end - at - 1);
      const std::size_t equals = std::min(one.find('='), one.size());
      const std::string value = equals == one.size() ? "" : one.substr(equals + 1);
      asked.query[decoded(one.substr(0, equals))] = decoded(value);
      at = end;
    }
    for (std::size_t at = line; at < head.size();) {
      const std::size_t end = std::min(head.find("\r\n", at + 2), head.size());
      const std::string one = head.substr(at + 2, end - at - 2);
      const std::size_t colon = std::min(one.find(':'), one.size());
      std::string name = one.substr(0, colon);
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      std::size_t value = std::min(colon + 1, one.size());
      while (value < one.size() && one[value] == ' ') ++value;
      asked.headers[name] = one.substr(value);
      at = end;
    }
  }

  std::string why_not_signed(const Asked& asked) const {
    const auto header = [&](const std::string& name) {
      const auto found = asked.headers.find(name);
      return found == asked.headers.end() ? "" : found->second;
    };
    const std::string said = header("authorization");
    if (said.find("Credential=" + credentials.key_id + "/") == said.npos)
      return "InvalidAccessKeyId";
    if (header("x-amz-security-token") != credentials.token) return "InvalidToken";
    if (header("x-amz-content-sha256") != to_hex(sha256(asked.body))) return "BadDigest";
    S3Signed to_sign;
    to_sign.method = asked.method;
    to_sign.path = asked.target.substr(0, asked.target.find('?'));
    to_sign.query = asked.query;
    const std::size_t begin = said.find("SignedHeaders=") + 14;
    std::string names = said.substr(begin, said.find(',', begin) - begin);
    for (const char* must : {"host", "x-amz-content-sha256", "x-amz-date"}) {
      if (names.find(must) == names.npos) return "AccessDenied";
    }
    if (!credentials.token.empty() && names.find("x-amz-security-token") == names.npos) {
      return "AccessDenied";
    }
    for (std::size_t at = 0; at <= names.size();) {
      const std::size_t end = std::min(names.find(';', at), names.size());
      to_sign.headers[names.substr(at, end - at)] = header(names.substr(at, end - at));
      at = end + 1;
    }
    to_sign.content_sum = header("x-amz-content-sha256");
    to_sign.time = header("x-amz-date");
    to_sign.region = kRegion;
    return s3_authorization(to_sign, credentials) == said ? "" : "SignatureDoesNotMatch";
  }

  Answer carried_out(const Asked& asked) {
    const std::string root = std::string("/") + kBucket + "/";
    if (!asked.path.starts_with(root)) return error(404, "NoSuchBucket");
    const std::string key = asked.key();
    if (key.empty()) return listed(asked.query);
    const auto found = objects_.find(key);
    if (asked.method == "PUT") {
      objects_[key] = asked.body;
      return {};
    }
    if (asked.method == "DELETE") {
      objects_.erase(key);
      return {204};
    }
    if (found == objects_.end()) return error(404, "NoSuchKey");
    const auto condition = asked.headers.find("if-match");
    if (condition != asked.headers.end() && condition->second != tag_of(found->second)) {
      return error(412, "PreconditionFailed");
    }
    const auto range = asked.headers.find("range");
    if (range == asked.headers.end()) return {200, found->second};
    const std::size_t dash = range->second.find('-');
    const std::size_t begin = std::strtoul(range->second.c_str() + 6, nullptr, 10);  // "bytes="
    const std::size_t last = std::strtoul(range->second.c_str() + dash + 1, nullptr, 10);
    if (begin >= found->second.size()) return error(416, "InvalidRange");
    return {206, found->second.substr(begin, last + 1 - begin)};
  }

  static std::string tag_of(const std::string& bytes) {
    return '"' + to_hex(sha256(bytes)).substr(0, 32) + '"';
  }

  Answer listed(const std::map<std::string, std::string>& query) const {
    const auto value = [&](const char* name) {
      const auto found = query.find(name);
      return found == query.end() ? "" : found->second;
    };
    const std::size_t most = std::strtoul(value("max-keys").c_str(), nullptr, 10);
    std::string text = "<?xml version=\"1.0\"?>\n<ListBucketResult>";
    std::size_t count = 0;
    for (auto at = objects_.upper_bound(value("start-after")); at != objects_.end(); ++at) {
      if (!at->first.starts_with(value("prefix"))) continue;
      if (count++ == most) break;
      text += "<Contents><Key>";
      for (const char c : at->first)
        text += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
      text += "</Key><Size>" + std::to_string(at->second.size()) + "</Size><ETag>&quot;" +
              tag_of(at->second).substr(1, 32) + "&quot;</ETag></Contents>";
    }
    return {200, text + "</ListBucketResult>"};
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::string> objects_;
  std::function<std::optional<Answer>(const Asked&)> how_;
  std::vector<std::string> requests_;
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<bool> ends_ = false;
  std::list<int> open_;
  int listener_ = -1;
  int port_ = 0;
  std::list<std::thread> clients_;
  std::thread thread_;
};

// This process finds the store as a user's would.
struct S3Found {
  explicit S3Found(const std::map<std::string, std::string>& variables) : set(variables) {
    for (const auto& [name, value] : set) setenv(name.c_str(), value.c_str(), 1);
  }
  ~S3Found() {
    for (const auto& [name, value] : set) unsetenv(name.c_str());
  }
  S3Found(const S3Found&) = delete;
  std::map<std::string, std::string> set;
};

}  // namespace tune::testing
