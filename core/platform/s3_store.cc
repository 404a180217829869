#include "core/platform/s3_store.h"

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/aws_settings.h"
#include "core/platform/files.h"
#include "core/platform/http.h"
#include "core/s3_request.h"
#include "core/sha256.h"

namespace tune {

using Kind = ObjectError::Kind;

namespace {

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

// The text of the file that a variable names, or of that one of the home folder. Empty: none.
std::string settings_file(const std::string& by_variable, const std::string& in_home) try {
  const std::string named = variable(by_variable);
  const std::filesystem::path home = variable("HOME");
  if (named.empty() && home.empty()) return {};
  return read_file(named.empty() ? home / in_home : std::filesystem::path(named));
} catch (const Error&) {
  return {};
}

struct Endpoint {
  std::string url;     // "https://host:port"
  std::string host;    // as the header says it
  std::string before;  // of the path, before a name: "/bucket/"
};

Endpoint endpoint_of(const AwsSettings& settings, const S3Address& address) {
  if (settings.endpoint.empty()) {
    // A certificate for *.s3.region.amazonaws.com fits no bucket with a dot in its name.
    const bool has_dot = address.bucket.find('.') != std::string::npos;
    const std::string amazon = fmt::format("s3.{}.amazonaws.com", settings.region);
    const std::string host = has_dot ? amazon : address.bucket + "." + amazon;
    return {"https://" + host, host, has_dot ? "/" + address.bucket + "/" : "/"};
  }
  std::string url = settings.endpoint;
  if (url.find("://") == url.npos) url = "https://" + url;
  const std::size_t begin = url.find("://") + 3;
  const std::size_t end = std::min(url.find('/', begin), url.size());
  std::string host = url.substr(begin, end - begin);
  const bool is_plain = url.starts_with("http://");
  const std::string usual = is_plain ? ":80" : ":443";  // not said in the header
  if (host.ends_with(usual)) host.resize(host.size() - usual.size());
  return {url.substr(0, end), host, url.substr(end) + "/" + address.bucket + "/"};
}

Kind kind_of(const HttpAnswer& answer, const std::string& code) {
  const long status = answer.status;
  if (status == 0 || status == 408 || status == 429 || status == 409) return Kind::kAway;
  if (status >= 500 && status != 501 && status != 505 && status != 507) return Kind::kAway;
  if (status == 401 || status == 403 || code.starts_with("ExpiredToken") ||
      code.starts_with("InvalidToken")) {
    return Kind::kDenied;
  }
  const bool has_moved = code.starts_with("RequestTimeout") || code.starts_with("BadDigest") ||
                         code.starts_with("XAmzContentSHA256Mismatch");  // damaged on its way
  return has_moved ? Kind::kAway : Kind::kRefused;
}

}  // namespace

AwsSettings read_aws_settings() {
  return aws_settings({variable, settings_file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
                       settings_file("AWS_CONFIG_FILE", ".aws/config")});
}

struct S3Store::Asked {
  std::string method;
  std::string name;  // of an object; empty: the bucket itself
  std::map<std::string, std::string> query = {};
  std::string_view body = {};
  std::vector<std::string> headers = {};  // that are not signed
};

struct S3Store::Inside {
  explicit Inside(S3Place told) : place(std::move(told)), address(parse_s3_address(place.address)) {
    read_settings();
  }
  void read_settings() {
    settings = read_aws_settings();
    if (settings.endpoint.empty()) settings.endpoint = place.endpoint;
    if (settings.region.empty()) settings.region = place.region;
    if (settings.region.empty()) settings.region = "us-east-1";
  }
  std::string key(const std::string& name) const {
    return address.prefix.empty() ? name : address.prefix + "/" + name;
  }

  S3Place place;
  S3Address address;
  AwsSettings settings;
  HttpConnection connection;
  std::atomic<bool> is_abandoned = false;
};

S3Store::S3Store(S3Place place) : inside_(std::make_unique<Inside>(std::move(place))) {}
S3Store::~S3Store() = default;

void S3Store::abandon() {
  inside_->is_abandoned = true;
}

// ---- Requests -----------------------------------------------------------------------------------

std::string S3Store::shown(const Asked& asked) const {
  const char* doing = asked.method == "PUT"      ? "writing"
                      : asked.method == "DELETE" ? "removing"
                      : asked.name.empty()       ? "listing"
                                                 : "reading";
  const std::string name = asked.name.empty() ? "" : "/" + asked.name;
  return fmt::format("{} {}{}", doing, inside_->address.text(), name);
}

// Credentials may have been renewed in their file meanwhile.
std::string S3Store::ask(const Asked& asked) {
  try {
    return ask_once(asked);
  } catch (const ObjectError& error) {
    if (error.kind() != Kind::kDenied) throw;
    const AwsCredentials former = inside_->settings.credentials;
    inside_->read_settings();
    if (inside_->settings.credentials == former) throw;
  }
  return ask_once(asked);
}

std::string S3Store::ask_once(const Asked& asked) {
  const AwsSettings& settings = inside_->settings;
  if (!settings.why_none.empty()) {
    throw ObjectError(Kind::kDenied, fmt::format("{}: {}", shown(asked), settings.why_none));
  }
  const Endpoint endpoint = endpoint_of(settings, inside_->address);
  const std::string path =
      asked.name.empty() ? endpoint.before : endpoint.before + inside_->key(asked.name);
  S3Signed to_sign;
  to_sign.method = asked.method;
  to_sign.path = uri_encoded(path, true);
  to_sign.query = asked.query;
  to_sign.content_sum = to_hex(sha256(asked.body));
  to_sign.time = fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time(nullptr)));
  to_sign.region = settings.region;
  to_sign.headers = {{"host", endpoint.host},
                     {"x-amz-content-sha256", to_sign.content_sum},
                     {"x-amz-date", to_sign.time}};
  if (!settings.credentials.token.empty()) {
    to_sign.headers["x-amz-security-token"] = settings.credentials.token;
  }
  HttpRequest request;
  request.method = asked.method;
  request.url = endpoint.url + to_sign.path;
  if (!asked.query.empty()) request.url += "?" + uri_encoded(asked.query);
  for (const auto& [name, value] : to_sign.headers) request.headers.push_back(name + ": " + value);
  request.headers.push_back("authorization: " + s3_authorization(to_sign, settings.credentials));
  request.headers.insert(request.headers.end(), asked.headers.begin(), asked.headers.end());
  request.headers.push_back("content-type: application/octet-stream");
  request.headers.push_back("expect:");  // it would cost a round trip
  request.lent_body = asked.body.data() == nullptr ? std::string_view("") : asked.body;
  request.ca_file = settings.ca_file;
  request.limit = std::chrono::minutes(10);
  request.connect_limit = std::chrono::seconds(10);
  request.stall_limit = std::chrono::seconds(30);
  HttpAnswer answer = inside_->connection.ask(request, &inside_->is_abandoned);
  if (answer.is_good()) return std::move(answer.body);
  const std::string said = s3_error(answer.body);
  if (answer.status == 404 && !asked.name.empty() && !said.starts_with("NoSuchBucket")) {
    throw ObjectError(Kind::kAbsent, fmt::format("{}: it is not there", shown(asked)));
  }
  std::string why = answer.error;
  if (answer.status != 0) why = std::to_string(answer.status);
  if (!said.empty()) why += " " + said;
  if (answer.status == 412) why = "it has been replaced since it was listed";
  const std::string skewed = s3_clock_fault(answer.body, to_sign.time);
  if (!skewed.empty()) why += "; " + skewed;
  throw ObjectError(skewed.empty() ? kind_of(answer, said) : Kind::kSkewed,
                    fmt::format("{} at {}: {}", shown(asked), shown_address(endpoint.url), why));
}

void S3Store::put(const std::string& name, std::string_view bytes) {
  ask({.method = "PUT", .name = name, .body = bytes});
}

std::string S3Store::get(const std::string& name) {
  return ask({.method = "GET", .name = name});
}

void S3Store::remove(const std::string& name) {
  try {
    ask({.method = "DELETE", .name = name});
  } catch (const ObjectError& error) {
    if (error.kind() != Kind::kAbsent) throw;
  }
}

std::vector<S3Object> S3Store::list_objects(const std::string& prefix, const std::string& after) {
  const std::string root = inside_->key("");
  Asked asked{.method = "GET", .name = ""};
  asked.query = {{"list-type", "2"}, {"max-keys", "1000"}, {"prefix", root + prefix}};
  if (!after.empty()) asked.query["start-after"] = root + after;
  const std::string page = ask(asked);
  std::vector<std::string> keys = xml_texts(page, "Key");
  std::vector<std::string> sizes = xml_texts(page, "Size"), tags = xml_texts(page, "ETag");
  sizes.resize(keys.size());
  if (tags.size() != keys.size()) tags.assign(keys.size(), "");  // some stores have none
  std::vector<S3Object> objects;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!keys[i].starts_with(root)) continue;
    objects.push_back({keys[i].substr(root.size()), std::strtoull(sizes[i].c_str(), nullptr, 10),
                       std::move(tags[i])});
  }
  return objects;
}

std::vector<std::string> S3Store::list(const std::string& prefix, const std::string& after) {
  std::vector<std::string> names;
  for (S3Object& object : list_objects(prefix, after)) names.push_back(std::move(object.name));
  return names;
}

std::string S3Store::get_part(const S3Object& object, std::uint64_t begin, std::size_t bytes) {
  if (bytes == 0) return {};
  Asked asked{.method = "GET", .name = object.name};
  asked.headers = {fmt::format("range: bytes={}-{}", begin, begin + bytes - 1)};
  if (!object.tag.empty()) asked.headers.push_back("if-match: " + object.tag);
  std::string part = ask(asked);
  if (part.size() == bytes) return part;
  throw ObjectError(Kind::kRefused,
                    fmt::format("{}: {} bytes came instead of those from {} to {}", shown(asked),
                                part.size(), begin, begin + bytes));
}

}  // namespace tune
