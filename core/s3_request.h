// Requests to stores that speak S3: addresses, signatures and answers. Pure.
//
// Signed here (AWS Signature Version 4) and not by libcurl: its older versions leave out the token
// of temporary credentials and the sum of the content, and each has its own way with queries.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

inline constexpr std::string_view kS3Scheme = "s3://";

// "s3://bucket/a/prefix"
struct S3Address {
  std::string bucket;
  std::string prefix;  // without a '/' at its ends; empty: none
  std::string text() const;
  friend bool operator==(const S3Address&, const S3Address&) = default;
};
inline bool is_s3(std::string_view address) {
  return address.starts_with(kS3Scheme);
}
// Throws Error (kBadInput).
S3Address parse_s3_address(const std::string& address);
// The beginning of the names of all objects below an address: "a/prefix/"; of a bucket nothing.
std::string s3_folder(const std::string& address);

struct AwsCredentials {
  std::string key_id;
  std::string secret;
  std::string token;  // of temporary ones; empty: none
  friend bool operator==(const AwsCredentials&, const AwsCredentials&) = default;
};

struct S3Signed {
  std::string method;
  std::string path;                            // encoded
  std::map<std::string, std::string> query;    // not encoded
  std::map<std::string, std::string> headers;  // all that are signed, by lower-case name: host, ...
  std::string content_sum;                     // SHA-256 in hexadecimal digits
  std::string time;                            // "20130524T000000Z"
  std::string region;
};
// The value of the header Authorization.
std::string s3_authorization(const S3Signed& request, const AwsCredentials& credentials);

// As a signature and an address want it: all but letters, digits and "-._~", and '/' where it is
// `kept`.
std::string uri_encoded(std::string_view text, bool keeps_slash);
std::string uri_encoded(const std::map<std::string, std::string>& query);

// The content of each element of that name, in order.
std::vector<std::string> xml_texts(std::string_view xml, const std::string& name);
// The error in an answer: "InvalidAccessKeyId: The Access Key Id ... does not exist"; empty: none.
std::string s3_error(std::string_view body);
// When the store refuses a request for its time: both times, and what helps. Empty: it does not.
// `signed_at` is S3Signed::time.
std::string s3_clock_fault(std::string_view body, const std::string& signed_at);

}  // namespace tune
