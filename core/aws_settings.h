// The place of an S3 store and the identity of those who ask, by the variables and files that every
// program for S3 reads (AWS_ACCESS_KEY_ID, ~/.aws/credentials, ...). Pure.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/s3_request.h"

namespace tune {

struct AwsSettings {
  AwsCredentials credentials;  // without a key_id: there are none, for `why_none`
  std::string why_none;
  std::string region;    // empty: not said
  std::string endpoint;  // "https://host:port"; empty: Amazon's
  std::string ca_file;   // of certificates to trust; empty: the machine's
};

// The values of one section of a file of ini form: {"region": "eu-central-1"}.
std::map<std::string, std::string> ini_section(std::string_view text, std::string_view section);

struct AwsSources {
  std::function<std::string(const std::string& name)> variable;  // empty: not set
  std::string credentials_file;                                  // its text
  std::string config_file;
};
AwsSettings aws_settings(const AwsSources& sources);

}  // namespace tune
