#include "tune/view/api.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"
#include "tune/view/experiment_blobs.h"
#include "tune/view/experiment_json.h"
#include "tune/view/nodes_json.h"
#include "tune/view/prometheus.h"
#include "tune/view/rungs_blob.h"
#include "tune/view/usage_blob.h"

namespace tune::view {

namespace {

Answer refused(int status, const std::string& why) {
  return {.status = status, .body = to_json(Value{{"error", why}})};
}

Answer json(const Value& value) {
  return {.body = to_json(value)};
}

Answer blob(std::string bytes, std::string etag) {
  return {.type = "application/octet-stream", .body = std::move(bytes), .etag = std::move(etag)};
}

std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return number;
}

std::string_view take_until(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

}  // namespace

Answer Api::answer(std::string_view target, std::string_view known) try {
  Query query;
  std::string_view path = take_until(target, '?');
  while (!target.empty() && query.size() < 16) {
    std::string_view value = take_until(target, '&');
    const std::string_view name = take_until(value, '=');
    query.insert_or_assign(std::string(name), std::string(value));
  }
  if (path == "/metrics") return metrics();
  if (path == "/api/experiments") return list();
  constexpr std::string_view kOne = "/api/x/";
  if (!path.starts_with(kOne)) return refused(404, "there is nothing of this name");
  path.remove_prefix(kOne.size());
  const std::string_view key = take_until(path, '/');
  Experiment* experiment = storage_.open(key, Storage::Clock::now());
  if (experiment == nullptr)
    return refused(404, "there is no such experiment, or it cannot be read");
  return about(*experiment, path, query, known);
} catch (const std::exception& error) {
  return refused(500, error.what());
}

Answer Api::about(Experiment& experiment, std::string_view what, const Query& query,
                  std::string_view known) {
  const auto number = [&](std::string_view name) -> std::optional<std::uint64_t> {
    const auto found = query.find(name);
    return found == query.end() ? std::nullopt : whole(found->second);
  };
  if (what == "meta") return meta(experiment, known);
  if (!experiment.is_loaded()) return {.status = 202, .body = to_json(meta_of(experiment, boot_))};

  if (what == "columns" || what == "attempts" || what == "rungs" || what == "curves") {
    std::string etag = fmt::format("\"{}-{}\"", boot_, experiment.change());
    if (etag == known) return {.status = 304, .body = {}, .etag = std::move(etag)};
    if (what == "attempts") return blob(attempts_blob(experiment), std::move(etag));
    if (what == "rungs") return blob(rungs_blob(experiment), std::move(etag));
    if (what == "curves") {
      const CurvesAsked asked{.metric = number("m").value_or(SIZE_MAX),
                              .best = number("best").value_or(0),
                              .sample = number("sample").value_or(0)};
      return blob(curves_blob(experiment, asked), std::move(etag));
    }
    const auto columns = query.find("c");
    if (columns == query.end()) return refused(400, "which columns?");
    return blob(columns_blob(experiment, columns->second, number("since").value_or(0)),
                std::move(etag));
  }

  if (what == "lineage") return json(lineage_of(experiment));
  if (what == "nodes") return json(nodes_of(experiment));
  if (what == "importance") return json(importance_.ask(experiment));

  const std::uint64_t trial = number("n").value_or(UINT64_MAX);
  const auto row = trial < UINT32_MAX ? experiment.trials().find(static_cast<std::uint32_t>(trial))
                                      : std::nullopt;
  if (!row) return refused(404, "there is no such trial");
  if (what == "trial") return json(trial_of(experiment, *row));
  if (what == "results") return blob(results_blob(experiment, *row), {});
  if (what == "usage") return blob(usage_blob(experiment, *row), {});
  if (what == "log") {
    return json(log_of(experiment, *row,
                       {.is_stderr = number("s") == 1,
                        .rank = static_cast<std::uint32_t>(number("r").value_or(0) % 100'000),
                        .from = number("from")}));
  }
  return refused(404, "there is nothing of this name");
}

// Made once for each change, however many look.
Answer Api::meta(Experiment& experiment, std::string_view known) {
  const auto made = [&] {
    Value value = meta_of(experiment, boot_);
    value.set("control", control_);
    return json(value);
  };
  if (!experiment.is_loaded()) return made();
  std::string etag = fmt::format("\"{}-{}\"", boot_, experiment.change());
  if (etag == known) return {.status = 304, .body = {}, .etag = std::move(etag)};
  Answer& kept = metas_[experiment.head().key];
  if (kept.etag != etag) {
    kept = made();
    kept.etag = std::move(etag);
  }
  return kept;
}

const std::filesystem::path* Api::directory_of(std::string_view key) {
  const Experiment* experiment = storage_.open(key, Storage::Clock::now());
  return experiment == nullptr ? nullptr : &experiment->head().directory;
}

Answer Api::list() {
  Value::List all;
  for (const ExperimentHead& head : storage_.list(Storage::Clock::now())) {
    all.push_back(head_value(head));
  }
  return json(Value{{"boot", boot_},
                    {"control", control_},
                    {"folder", storage_.directory().string()},
                    {"one", storage_.is_one_experiment()},
                    {"experiments", Value::make_list(std::move(all))}});
}

Answer Api::metrics() {
  storage_.open_running(Storage::Clock::now());
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = prometheus_text(storage_)};
}

}  // namespace tune::view
