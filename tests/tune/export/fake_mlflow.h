// FakeMlflow: what a server of MLflow answers, in memory: experiments, runs, artifacts and versions
// of models, with its limits and its refusals. ServedMlflow is the same by HTTP, in a thread.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/json.h"
#include "core/platform/files.h"
#include "core/platform/http.h"
#include "listener.h"

namespace tune::testing {

class FakeMlflow {
 public:
  struct Run {
    std::string name, status = "RUNNING";
    std::map<std::string, std::string> tags, params;
    // Every (metric, step, time, value as text), as MLflow keeps each once.
    std::set<std::tuple<std::string, std::int64_t, std::int64_t, std::string>> metrics;
    std::int64_t end_time = 0;

    std::vector<std::string> values(const std::string& metric) const {
      std::vector<std::string> found;
      for (const auto& [key, step, time, value] : metrics) {
        if (key == metric) found.push_back(std::to_string(step) + ":" + value);
      }
      return found;
    }
  };
  std::map<std::string, Run> runs;               // by id
  std::map<std::string, std::string> artifacts;  // by place
  std::vector<Value> versions;
  std::map<std::string, std::string> experiments;  // ids, by name
  std::vector<std::string> calls;
  std::vector<std::string> headers;  // of the newest request
  bool keeps_artifacts = true;
  // Answers to come that are lost after they were carried out, counted from the next one on.
  std::set<std::size_t> lost;
  long refuses = 0;  // every request, with this status
  std::string refused_metric;

  HttpAnswer answer(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    headers = request.headers;
    if (!request.user.empty()) headers.push_back("user " + request.user);
    const std::size_t api = request.url.find("/api/2.0/");
    std::string call = request.url.substr(api + 9);
    std::string query;
    if (const std::size_t mark = call.find('?'); mark != call.npos) {
      query = call.substr(mark + 1);
      call.resize(mark);
    }
    calls.push_back(call);
    if (refuses != 0) return {.status = refuses, .body = "no"};
    HttpAnswer given = carry_out(call, query, request);
    if (lost.contains(calls.size())) return {.error = "the connection was lost"};
    return given;
  }
  const Run* named(const std::string& name) const {
    for (const auto& [id, run] : runs) {
      if (run.name == name) return &run;
    }
    return nullptr;
  }
  std::size_t count(const std::string& call) const {
    std::size_t found = 0;
    for (const std::string& one : calls) found += one == call ? 1 : 0;
    return found;
  }

 private:
  static HttpAnswer good(const Value& body) { return {.status = 200, .body = to_json(body)}; }
  static HttpAnswer bad(const std::string& code, const std::string& message, long status = 400) {
    return {.status = status, .body = to_json(Value{{"error_code", code}, {"message", message}})};
  }

  HttpAnswer carry_out(const std::string& call, const std::string& query,
                       const HttpRequest& request) {
    const std::string artifact = "mlflow-artifacts/artifacts/";
    if (call.starts_with(artifact)) {
      artifacts[call.substr(artifact.size())] =
          request.body_file.empty() ? request.body : read_file(request.body_file);
      return good(Value::make_map());
    }
    const Value body = request.body.empty() ? Value::make_map() : parse_json(request.body, "body");
    if (call == "mlflow/experiments/get-by-name") return experiment(query.substr(16));
    if (call == "mlflow/experiments/create") {
      const std::string id = std::to_string(experiments.size() + 1);
      experiments[body.get<std::string>("name")] = id;
      return good({{"experiment_id", id}});
    }
    if (call == "mlflow/runs/create") return create(body);
    if (call == "mlflow/runs/search") return search(body);
    if (call == "mlflow/runs/get") return good({{"run", shown(query.substr(7))}});
    if (call == "mlflow/runs/update") return update(body);
    if (call == "mlflow/runs/log-batch") return log_batch(body, request.body.size());
    if (call == "mlflow/registered-models/create") {
      return versions.empty() ? good(Value::make_map()) : bad("RESOURCE_ALREADY_EXISTS", "there");
    }
    if (call == "mlflow/model-versions/search") {
      return good({{"model_versions", Value::make_list({versions.begin(), versions.end()})}});
    }
    if (call == "mlflow/model-versions/create") {
      versions.push_back(body);
      return good(Value::make_map());
    }
    return bad("ENDPOINT_NOT_FOUND", "no " + call, 404);
  }
  HttpAnswer experiment(const std::string& name) {
    const auto found = experiments.find(name);
    if (found == experiments.end()) return bad("RESOURCE_DOES_NOT_EXIST", "none", 404);
    return good(
        {{"experiment", {{"experiment_id", found->second}, {"lifecycle_stage", "active"}}}});
  }
  HttpAnswer create(const Value& body) {
    const std::string id = "run" + std::to_string(runs.size() + 1);
    Run& run = runs[id];
    run.name = body.get<std::string>("run_name");
    for (const Value& tag : body.at("tags").list()) {
      run.tags[tag.get<std::string>("key")] = tag.get<std::string>("value");
    }
    return good({{"run", shown(id)}});
  }
  Value shown(const std::string& id) const {
    const Run& run = runs.at(id);
    Value::List tags;
    for (const auto& [key, value] : run.tags) tags.push_back({{"key", key}, {"value", value}});
    return {{"info",
             {{"run_id", id},
              {"status", run.status},
              {"artifact_uri", keeps_artifacts ? "mlflow-artifacts:/1/" + id + "/artifacts"
                                               : "s3://bucket/" + id}}},
            {"data", {{"tags", Value::make_list(std::move(tags))}}}};
  }
  // Filters are "tags.`key` = 'value'"; pages of two runs.
  HttpAnswer search(const Value& body) {
    const auto filter = body.get<std::string>("filter");
    const std::size_t key_end = filter.find('`', 6);
    const std::string key = filter.substr(6, key_end - 6);
    const std::string value = filter.substr(key_end + 5, filter.size() - key_end - 6);
    const std::size_t begin = std::stoul(body.get_or("page_token", "0"));
    Value::List found;
    std::size_t seen = 0;
    for (const auto& [id, run] : runs) {
      const auto tag = run.tags.find(key);
      if (tag == run.tags.end() || tag->second != value) continue;
      if (seen++ >= begin && found.size() < 2) found.push_back(shown(id));
    }
    Value answer{{"runs", Value::make_list(std::move(found))}};
    if (seen > begin + 2) answer.set("next_page_token", std::to_string(begin + 2));
    return good(answer);
  }
  HttpAnswer update(const Value& body) {
    Run& run = runs.at(body.get<std::string>("run_id"));
    run.status = body.get<std::string>("status");
    run.end_time = body.get_or("end_time", std::int64_t{0});
    return good(Value::make_map());
  }
  HttpAnswer log_batch(const Value& body, std::size_t bytes) {
    const Value::List& metrics = body.at("metrics").list();
    const Value::List& params = body.at("params").list();
    const Value::List& tags = body.at("tags").list();
    const std::size_t all = metrics.size() + params.size() + tags.size();
    if (params.size() > 100 || tags.size() > 100 || all > 1000 || bytes > 1'000'000) {
      return bad("INVALID_PARAMETER_VALUE", "too many entries");
    }
    Run& run = runs.at(body.get<std::string>("run_id"));
    for (const Value& param : params) {
      const auto key = param.get<std::string>("key"), value = param.get<std::string>("value");
      const auto [there, is_new] = run.params.emplace(key, value);
      if (!is_new && there->second != value) return bad("INVALID_PARAMETER_VALUE", "changed param");
    }
    for (const Value& metric : metrics) {
      const auto key = metric.get<std::string>("key");
      if (key == refused_metric) return bad("INVALID_PARAMETER_VALUE", "Invalid metric name");
      const Value& value = metric.at("value");
      run.metrics.emplace(key, metric.get<std::int64_t>("step"),
                          metric.get<std::int64_t>("timestamp"),
                          value.is_string() ? value.string() : to_json(value));
    }
    for (const Value& tag : tags) {
      run.tags[tag.get<std::string>("key")] = tag.get<std::string>("value");
    }
    return good(Value::make_map());
  }

  std::mutex mutex_;
};

class ServedMlflow {
 public:
  explicit ServedMlflow(FakeMlflow& fake) : fake_(fake) {
    const auto [listener, port] = testing::listen_on_this_host(8);
    listener_ = listener;
    url_ = "http://127.0.0.1:" + std::to_string(port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ServedMlflow() { end(); }
  ServedMlflow(const ServedMlflow&) = delete;
  // Nobody is answered any more: what came may be looked at.
  void end() {
    if (!thread_.joinable()) return;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  const std::string& url() const { return url_; }

 private:
  void serve() {
    for (;;) {
      const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      answer(client);
      close(client);
    }
  }
  void answer(int client) {
    std::string text;
    std::size_t head = text.npos, body = 0;
    char bytes[4096];
    while (head == text.npos || text.size() < head + 4 + body) {
      const ssize_t count = read(client, bytes, sizeof bytes);
      if (count <= 0) return;
      text.append(bytes, static_cast<std::size_t>(count));
      if (head == text.npos && (head = text.find("\r\n\r\n")) != text.npos) {
        const std::size_t length = text.find("Content-Length: ");
        if (length < head) body = std::strtoul(text.c_str() + length + 16, nullptr, 10);
        if (text.find("Expect: 100-continue") < head) say(client, "HTTP/1.1 100 Continue\r\n\r\n");
      }
    }
    const std::size_t space = text.find(' ');
    HttpRequest request{.method = text.substr(0, space),
                        .url = text.substr(space + 1, text.find(' ', space + 1) - space - 1),
                        .headers = {text.substr(0, head)},
                        .body = text.substr(head + 4)};
    const HttpAnswer given = fake_.answer(request);
    say(client, "HTTP/1.1 " + std::to_string(given.status) +
                    " x\r\nConnection: close\r\nContent-Length: " +
                    std::to_string(given.body.size()) + "\r\n\r\n" + given.body);
  }
  static void say(int client, const std::string& text) {
    if (send(client, text.data(), text.size(), MSG_NOSIGNAL) < 0) return;
  }

  FakeMlflow& fake_;
  int listener_ = -1;
  std::string url_;
  std::thread thread_;
};

}  // namespace tune::testing
