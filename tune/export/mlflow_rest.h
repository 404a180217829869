// MlflowServer: the calls of MLflow's REST interface (version 2.0), by HTTP. Not for the order of
// the calls: see MlflowExport. One thread uses it at a time.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "core/error.h"
#include "core/platform/http.h"
#include "core/value.h"

namespace tune {

// Where it is and how to be let in: the variables of MLflow's own client. They are read when an
// export begins, and kept in memory alone.
struct MlflowAddress {
  std::string uri;         // MLFLOW_TRACKING_URI: http or https, without a slash at its end
  std::string user = {};   // "name:password" of MLFLOW_TRACKING_USERNAME and _PASSWORD; empty: none
  std::string token = {};  // MLFLOW_TRACKING_TOKEN, where there is no user
  std::string experiment = {};  // MLFLOW_EXPERIMENT_NAME; empty: the name of the sweep

  // Throws Error (kBadInput) naming the variable when no server can be asked by these.
  static MlflowAddress of_environment();
};

// The server cannot be used now: nobody answers, it is overloaded, or it does not let this user in.
class MlflowTrouble : public Error {
 public:
  explicit MlflowTrouble(const std::string& what) : Error(ErrorCode::kIo, what) {}
};

// The answer to a request that the server has read: what it gives, or its refusal.
struct MlflowAnswer {
  Value body = Value::make_map();
  std::string refusal = {};  // its message; empty: the request was carried out
  std::string code = {};     // RESOURCE_DOES_NOT_EXIST, ...
  bool is_good() const { return refusal.empty(); }
};

class MlflowServer {
 public:
  using Ask = std::function<HttpAnswer(const HttpRequest&)>;
  explicit MlflowServer(MlflowAddress address, Ask ask = ask_http);

  // `call` is "runs/create"; `body` is JSON. All throw MlflowTrouble.
  MlflowAnswer post(const std::string& call, const std::string& body);
  // `query` is encoded: "run_id=1".
  MlflowAnswer get(const std::string& call, const std::string& query);
  // Puts a file among the artifacts that the server keeps; `place` is a path there.
  MlflowAnswer put_artifact(const std::string& place, const std::filesystem::path& file);

  const MlflowAddress& address() const { return address_; }
  std::string shown() const { return shown_address(address_.uri); }

 private:
  MlflowAnswer ask(HttpRequest request, const std::string& call);

  MlflowAddress address_;
  Ask ask_;
};

// For an address: every byte that is not a letter, a digit or one of -._~ as %XX; a slash stays.
std::string url_path(const std::string& text);

}  // namespace tune
