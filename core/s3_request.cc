#include "core/s3_request.h"

#include <cctype>

#include <fmt/format.h>

#include "core/error.h"
#include "core/sha256.h"

namespace tune {

std::string S3Address::text() const {
  return std::string(kS3Scheme) + bucket + (prefix.empty() ? "" : "/" + prefix);
}

S3Address parse_s3_address(const std::string& address) {
  const auto bad = [&](const std::string& why) {
    return Error(ErrorCode::kBadInput,
                 fmt::format("'{}' {}: write s3://BUCKET/PREFIX", address, why));
  };
  if (!is_s3(address)) throw bad("does not begin with s3://");
  std::string rest = address.substr(kS3Scheme.size());
  const std::size_t slash = rest.find('/');
  S3Address parsed{rest.substr(0, slash), slash == rest.npos ? "" : rest.substr(slash + 1)};
  for (const char c : parsed.bucket) {
    const bool fits =
        std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
    if (!fits) throw bad(fmt::format("has a '{}' in the bucket's name", c));
  }
  if (parsed.bucket.size() < 3 || parsed.bucket.size() > 63) {
    throw bad(fmt::format("names a bucket of {} letters, not of 3 to 63", parsed.bucket.size()));
  }
  while (parsed.prefix.ends_with('/')) parsed.prefix.pop_back();
  for (std::size_t at = 0; at <= parsed.prefix.size() && !parsed.prefix.empty();) {
    const std::size_t end = std::min(parsed.prefix.find('/', at), parsed.prefix.size());
    const std::string part = parsed.prefix.substr(at, end - at);
    if (part.empty() || part == "." || part == "..") {
      throw bad(fmt::format("has the part '{}' in its prefix", part));
    }
    for (const char c : part) {
      if (std::iscntrl(static_cast<unsigned char>(c))) throw bad("holds a control character");
    }
    at = end + 1;
  }
  constexpr std::size_t kMaxPrefix = 500;  // of 1,024 bytes that a name may have
  if (parsed.prefix.size() > kMaxPrefix) {
    throw bad(fmt::format("has a prefix of {} bytes, and {} are the limit", parsed.prefix.size(),
                          kMaxPrefix));
  }
  return parsed;
}

std::string s3_folder(const std::string& address) {
  const std::string prefix = parse_s3_address(address).prefix;
  return prefix.empty() ? "" : prefix + "/";
}

// ---- Signatures ---------------------------------------------------------------------------------

std::string uri_encoded(std::string_view text, bool keeps_slash) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool stays = (byte < 128 && std::isalnum(byte)) || c == '-' || c == '.' || c == '_' ||
                       c == '~' || (keeps_slash && c == '/');
    if (stays) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", byte);
    }
  }
  return encoded;
}

std::string uri_encoded(const std::map<std::string, std::string>& query) {
  std::string encoded;
  for (const auto& [name, value] : query) {
    if (!encoded.empty()) encoded += '&';
    encoded += uri_encoded(name, false) + "=" + uri_encoded(value, false);
  }
  return encoded;
}

std::string s3_authorization(const S3Signed& request, const AwsCredentials& credentials) {
  std::string headers, names;
  for (const auto& [name, value] : request.headers) {
    headers += fmt::format("{}:{}\n", name, value);
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                  uri_encoded(request.query), headers, names, request.content_sum);
  const std::string date = request.time.substr(0, 8);
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", date, request.region);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", request.time, scope, to_hex(sha256(canonical)));
  std::string key = hmac_sha256("AWS4" + credentials.secret, date);
  for (const std::string& part : {request.region, std::string("s3"), std::string("aws4_request")}) {
    key = hmac_sha256(key, part);
  }
  return fmt::format("AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                     credentials.key_id, scope, names, to_hex(hmac_sha256(key, to_sign)));
}

// ---- Answers ------------------------------------------------------------------------------------

namespace {

std::string unescaped(std::string_view text) {
  static const std::vector<std::pair<std::string_view, char>> entities{
      {"&amp;", '&'},   {"&lt;", '<'},   {"&gt;", '>'}, {"&quot;", '"'},
      {"&apos;", '\''}, {"&#39;", '\''}, {"&#34;", '"'}};
  std::string plain;
  while (!text.empty()) {
    std::size_t used = 0;
    for (const auto& [entity, c] : entities) {
      if (!text.starts_with(entity)) continue;
      plain += c;
      used = entity.size();
    }
    if (used == 0) {
      plain += text.front();
      used = 1;
    }
    text.remove_prefix(used);
  }
  return plain;
}

}  // namespace

std::vector<std::string> xml_texts(std::string_view xml, const std::string& name) {
  const std::string begin = "<" + name + ">", end = "</" + name + ">";
  std::vector<std::string> texts;
  for (std::size_t at = xml.find(begin); at != xml.npos; at = xml.find(begin, at)) {
    at += begin.size();
    const std::size_t close = xml.find(end, at);
    if (close == xml.npos) break;
    texts.push_back(unescaped(xml.substr(at, close - at)));
    at = close;
  }
  return texts;
}

std::string s3_error(std::string_view body) {
  const std::vector<std::string> codes = xml_texts(body, "Code");
  if (codes.empty()) return {};
  const std::vector<std::string> messages = xml_texts(body, "Message");
  std::string text = codes.front();
  if (!messages.empty() && !messages.front().empty()) text += ": " + messages.front();
  while (text.ends_with('.') || text.ends_with('\n')) text.pop_back();
  constexpr std::size_t kMaxShown = 300;
  if (text.size() > kMaxShown) text.resize(kMaxShown);
  return text;
}

namespace {

// "20130524T070000Z" or "2013-05-24T07:00:00.123Z", for people.
std::string shown_time(const std::string& time) {
  std::string digits;
  for (const char c : time) {
    if (c == '.') break;
    if (c >= '0' && c <= '9') digits += c;
  }
  if (digits.size() != 14) return "unknown";
  const auto part = [&](std::size_t begin) { return digits.substr(begin, 2); };
  return digits.substr(0, 4) + "-" + part(4) + "-" + part(6) + " " + part(8) + ":" + part(10) +
         ":" + part(12) + " UTC";
}

}  // namespace

std::string s3_clock_fault(std::string_view body, const std::string& signed_at) {
  if (!s3_error(body).starts_with("RequestTimeTooSkewed")) return {};
  const std::vector<std::string> theirs = xml_texts(body, "ServerTime");
  return "this machine's clock says " + shown_time(signed_at) + ", the store's " +
         (theirs.empty() ? "another time" : shown_time(theirs.front())) +
         ": set the clock of this machine, by NTP, say";
}

}  // namespace tune
