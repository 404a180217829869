#include "core/aws_settings.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "core/refusal.h"

namespace tune {
namespace {

using AwsVariables = std::map<std::string, std::string>;

AwsSettings settings_by(const AwsVariables& variables, const std::string& credentials = "",
                        const std::string& config = "") {
  return aws_settings({[variables](const std::string& name) {
                         const auto found = variables.find(name);
                         return found == variables.end() ? "" : found->second;
                       },
                       credentials, config});
}

const std::string kAwsCredentials =
    "# a comment\n[default]\naws_access_key_id = FILE\r\naws_secret_access_key=file secret =+/\n\n"
    "[ lab ]\n aws_access_key_id = nested\naws_access_key_id = LAB\n"
    "aws_secret_access_key = lab secret\naws_session_token = lab token\n[default-2]\nregion = no\n";
const std::string kAwsConfig =
    "[default]\nregion = eu-west-1\n[profile lab]\nregion = eu-lab-1\n"
    "endpoint_url = https://lab:9000/\ns3 =\n  addressing_style = path\nca_bundle = /lab.pem\n";

TEST_CASE("variables say more than files, and credentials come of one source") {
  const AwsSettings given = settings_by({{"AWS_ACCESS_KEY_ID", "ENV"},
                                         {"AWS_SECRET_ACCESS_KEY", "env secret"},
                                         {"AWS_DEFAULT_REGION", "us-2"},
                                         {"AWS_REGION", "us-1"},
                                         {"AWS_ENDPOINT_URL", "http://all:1"},
                                         {"AWS_ENDPOINT_URL_S3", "http://s3:1/"}},
                                        kAwsCredentials, kAwsConfig);
  CHECK(given.credentials == AwsCredentials{"ENV", "env secret", ""});
  CHECK(given.region == "us-1");
  CHECK(given.endpoint == "http://s3:1");
  CHECK(given.why_none.empty());
  // Half of a pair counts for nothing.
  CHECK(settings_by({{"AWS_ACCESS_KEY_ID", "ENV"}}, kAwsCredentials).credentials ==
        AwsCredentials{"FILE", "file secret =+/", ""});
}

TEST_CASE("files are read by profile") {
  const AwsSettings plain = settings_by({}, kAwsCredentials, kAwsConfig);
  CHECK(plain.credentials.key_id == "FILE");
  CHECK(plain.region == "eu-west-1");
  CHECK(plain.endpoint.empty());
  const AwsSettings lab = settings_by({{"AWS_PROFILE", "lab"}}, kAwsCredentials, kAwsConfig);
  CHECK(lab.credentials == AwsCredentials{"LAB", "lab secret", "lab token"});
  CHECK(lab.region == "eu-lab-1");
  CHECK(lab.endpoint == "https://lab:9000");
  CHECK(lab.ca_file == "/lab.pem");
  CHECK(settings_by({}, "", "[default]\naws_access_key_id=A\naws_secret_access_key=B")
            .credentials.key_id == "A");
}

TEST_CASE("without credentials it is said where they are looked for") {
  const AwsSettings none = settings_by({{"AWS_PROFILE", "absent"}}, kAwsCredentials, kAwsConfig);
  CHECK(none.credentials.key_id.empty());
  CHECK_HAS(none.why_none, "AWS_ACCESS_KEY_ID");
  CHECK_HAS(none.why_none, "~/.aws/credentials, profile absent");
}

}  // namespace
}  // namespace tune
