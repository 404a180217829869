#include "core/aws_settings.h"

#include <fmt/format.h>

namespace tune {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::map<std::string, std::string> ini_section(std::string_view text, std::string_view section) {
  std::map<std::string, std::string> values;
  bool is_within = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      is_within = line.back() == ']' && trimmed(line.substr(1, line.size() - 2)) == section;
      continue;
    }
    const std::size_t equals = line.find('=');
    const bool is_nested = whole.front() == ' ' || whole.front() == '\t';  // of the value before
    if (!is_within || equals == line.npos || is_nested) continue;
    values[std::string(trimmed(line.substr(0, equals)))] = trimmed(line.substr(equals + 1));
  }
  return values;
}

AwsSettings aws_settings(const AwsSources& sources) {
  const auto& variable = sources.variable;
  const auto first = [](std::initializer_list<std::string> texts) {
    for (const std::string& text : texts) {
      if (!text.empty()) return text;
    }
    return std::string();
  };
  const std::string named = first({variable("AWS_PROFILE"), variable("AWS_DEFAULT_PROFILE")});
  const std::string profile = first({named, "default"});
  auto credentials = ini_section(sources.credentials_file, profile);
  auto config =
      ini_section(sources.config_file, profile == "default" ? profile : "profile " + profile);
  AwsSettings settings;
  settings.region =
      first({variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"), config["region"]});
  settings.endpoint = first({variable("AWS_ENDPOINT_URL_S3"), variable("AWS_ENDPOINT_URL"),
                             credentials["endpoint_url"], config["endpoint_url"]});
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  settings.ca_file = first({variable("AWS_CA_BUNDLE"), config["ca_bundle"]});
  // Of one source, never mixed: a key of one and a secret of another fit nothing.
  const auto of = [](auto&& value) {
    return AwsCredentials{value("aws_access_key_id"), value("aws_secret_access_key"),
                          value("aws_session_token")};
  };
  AwsCredentials given{variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"),
                       variable("AWS_SESSION_TOKEN")};
  const auto is_whole = [](const AwsCredentials& one) {
    return !one.key_id.empty() && !one.secret.empty();
  };
  if (!is_whole(given)) given = of([&](const char* key) { return credentials[key]; });
  if (!is_whole(given)) given = of([&](const char* key) { return config[key]; });
  if (is_whole(given)) {
    settings.credentials = std::move(given);
  } else {
    settings.why_none = fmt::format(
        "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them "
        "into ~/.aws/credentials, profile {}",
        profile);
  }
  return settings;
}

}  // namespace tune
