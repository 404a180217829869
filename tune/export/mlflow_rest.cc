#include "tune/export/mlflow_rest.h"

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"

namespace tune {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCallLimit{10'000};
constexpr milliseconds kFileLimit{600'000};
constexpr std::size_t kShownRefusal = 300;  // bytes

std::string variable_of_mlflow(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string text_at(const Value& map, std::string_view key) {
  const Value* found = map.find(key);
  return found != nullptr && found->is_string() ? found->string() : std::string();
}

// A page of a proxy, say, is not JSON.
Value body_of(const HttpAnswer& answer) {
  try {
    Value body = parse_json(answer.body, "the answer");
    if (body.is_map()) return body;
  } catch (const Error&) {
  }
  return Value::make_map();
}

[[noreturn]] void cannot_use(const std::string& where, const std::string& why) {
  throw MlflowTrouble(fmt::format("asking the MLflow server at {}: {}", where, why));
}

}  // namespace

MlflowAddress MlflowAddress::of_environment() {
  MlflowAddress address;
  address.uri = variable_of_mlflow("MLFLOW_TRACKING_URI");
  if (address.uri.empty()) {
    throw Error(ErrorCode::kBadInput,
                "MLFLOW_TRACKING_URI is not set: give the address of the server, as in "
                "MLFLOW_TRACKING_URI=http://127.0.0.1:5000");
  }
  if (!address.uri.starts_with("http://") && !address.uri.starts_with("https://")) {
    throw Error(
        ErrorCode::kBadInput,
        "MLFLOW_TRACKING_URI is not an address of a server (http:// or https://): start one "
        "with mlflow server, and name it there");
  }
  while (address.uri.ends_with('/')) address.uri.pop_back();
  const std::string name = variable_of_mlflow("MLFLOW_TRACKING_USERNAME");
  if (!name.empty()) address.user = name + ":" + variable_of_mlflow("MLFLOW_TRACKING_PASSWORD");
  address.token = variable_of_mlflow("MLFLOW_TRACKING_TOKEN");
  address.experiment = variable_of_mlflow("MLFLOW_EXPERIMENT_NAME");
  return address;
}

MlflowServer::MlflowServer(MlflowAddress address, Ask ask)
    : address_(std::move(address)), ask_(std::move(ask)) {}

MlflowAnswer MlflowServer::post(const std::string& call, const std::string& body) {
  return ask({.method = "POST",
              .url = fmt::format("{}/api/2.0/mlflow/{}", address_.uri, call),
              .headers = {"Content-Type: application/json"},
              .body = body,
              .limit = kCallLimit},
             call);
}

MlflowAnswer MlflowServer::get(const std::string& call, const std::string& query) {
  return ask({.url = fmt::format("{}/api/2.0/mlflow/{}?{}", address_.uri, call, query),
              .limit = kCallLimit},
             call);
}

MlflowAnswer MlflowServer::put_artifact(const std::string& place,
                                        const std::filesystem::path& file) {
  return ask({.method = "PUT",
              .url = fmt::format("{}/api/2.0/mlflow-artifacts/artifacts/{}", address_.uri,
                                 url_path(place)),
              .headers = {"Content-Type: application/octet-stream"},
              .body_file = file,
              .limit = kFileLimit},
             "the upload of " + file.filename().string());
}

MlflowAnswer MlflowServer::ask(HttpRequest request, const std::string& call) {
  request.user = address_.user;
  if (request.user.empty() && !address_.token.empty()) {
    request.headers.push_back("Authorization: Bearer " + address_.token);
  }
  const HttpAnswer answer = ask_(request);
  if (answer.status == 0) cannot_use(shown(), answer.error);
  MlflowAnswer told{.body = body_of(answer)};
  if (answer.is_good()) return told;
  told.code = text_at(told.body, "error_code");
  told.refusal = text_at(told.body, "message").substr(0, kShownRefusal);
  if (answer.status == 401 || answer.status == 403) {
    cannot_use(shown(), fmt::format("it refuses {} with the status {}: set "
                                    "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or "
                                    "MLFLOW_TRACKING_TOKEN",
                                    call, answer.status));
  }
  const bool is_of_mlflow = !told.code.empty() && answer.status < 500 && answer.status != 429;
  if (!is_of_mlflow) {
    cannot_use(shown(), fmt::format("it answers {} with the status {}{}{}", call, answer.status,
                                    told.refusal.empty() ? "" : ": ", told.refusal));
  }
  if (told.refusal.empty()) told.refusal = told.code;
  return told;
}

std::string url_path(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    if (is_plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace tune
