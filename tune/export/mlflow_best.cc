// The best trial's files on the MLflow server, and a version of a registered model from them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/checkpoint_name.h"
#include "core/json.h"
#include "tune/export/mlflow.h"
#include "tune/results/analysis.h"
#include "tune/results/result_lines.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr const char* kArtifacts = "mlflow-artifacts:";
constexpr const char* kFilesTag = "tune.files";

struct Upload {
  fs::path file;
  std::string place;  // below the run's artifacts
};

// The plain files of a folder, in order of their names.
void add_files(const fs::path& folder, const std::string& place, std::vector<Upload>& uploads) {
  std::error_code error;
  std::vector<Upload> found;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_regular_file() || entry->is_symlink()) continue;
    found.push_back(
        {entry->path(), place + "/" + entry->path().lexically_relative(folder).string()});
  }
  std::ranges::sort(found, {}, &Upload::place);
  std::ranges::move(found, std::back_inserter(uploads));
}

// The place below the server's artifacts; empty when they are kept elsewhere.
std::string place_of(const std::string& uri) {
  if (!uri.starts_with(kArtifacts)) return {};
  std::string_view rest = std::string_view(uri).substr(std::string_view(kArtifacts).size());
  if (rest.starts_with("//")) rest = rest.substr(std::min(rest.find('/', 2), rest.size()));
  while (rest.starts_with('/')) rest.remove_prefix(1);
  return std::string(rest);
}

// Among the tags of a run as the server gives it.
std::string tag_there(const Value& answer, std::string_view key) {
  const Value* tags = answer.find("run/data/tags");
  if (tags == nullptr || !tags->is_list()) return {};
  for (const Value& tag : tags->list()) {
    if (tag.get_or("key", "") == key) return tag.get_or("value", "");
  }
  return {};
}

}  // namespace

void MlflowExport::tell_best() {
  std::optional<TrialSummary> best;
  const Analysis analysis = Analysis::load(experiment_);
  double value = 0;
  try {
    best = analysis.best_trial();
    value = last_result_line(best->directory).number(head_.metric).value_or(0);
  } catch (const Error&) {
    return;  // no trial has a value, or there is no metric
  }
  const auto number = number_of_id(best->id);
  const auto run = runs_.find(number.value_or(UINT32_MAX));
  if (run == runs_.end()) return;
  MlflowBatch told;
  told.metric("best/" + head_.metric, value, 0, analysis.trials().size());
  told.tag("tune.best_trial", best->id);
  told.tag("tune.best_run", run->second.id);
  told.tag("tune.best_config", best->config().dump());
  accept(server_.post("runs/log-batch", told.take(parent_.id)), parent_);
  send_files(analysis, *best, run->second);
}

void MlflowExport::send_files(const Analysis& analysis, const TrialSummary& best, Run& run) {
  std::vector<Upload> uploads;
  std::string kept;  // the tag that tells of them
  try {
    const BestCheckpoint checkpoint = analysis.best_checkpoint();
    add_files(checkpoint.path, "checkpoint", uploads);
    kept = checkpoint.path.filename().string();
  } catch (const Error&) {  // none was saved
  }
  add_files(best.directory / "results", "results", uploads);
  if (uploads.empty()) return;
  const MlflowAnswer there = server_.get("runs/get", "run_id=" + run.id);
  accept(there, run);
  if (run.is_refused) return;
  const std::string uri = there.body.get_or("run/info/artifact_uri", "");
  const std::string place = place_of(uri);
  if (place.empty()) {
    problems_.push_back(
        fmt::format("the files of trial {} are not sent: this server keeps none "
                    "itself (mlflow server --serve-artifacts does)",
                    best.id));
    return;
  }
  kept += fmt::format(" {}", uploads.size());
  const std::string model = uploads.back().place.starts_with("results/") ? "results" : "checkpoint";
  if (tag_there(there.body, kFilesTag) != kept) {
    for (const Upload& upload : uploads) {
      accept(server_.put_artifact(place + "/" + upload.place, upload.file), run);
      if (run.is_refused) return;
    }
    MlflowBatch told;
    told.tag(kFilesTag, kept);
    accept(server_.post("runs/log-batch", told.take(run.id)), run);
  }
  if (!options_.registered_model.empty()) register_files(run, uri + "/" + model);
}

void MlflowExport::register_files(const Run& run, const std::string& source) {
  const std::string& name = options_.registered_model;
  const auto refused = [&](const MlflowAnswer& answer) {
    if (answer.is_good()) return false;
    problems_.push_back(fmt::format("MLflow refuses a version of {}: {}", name, answer.refusal));
    return true;
  };
  const MlflowAnswer model =
      server_.post("registered-models/create", to_json(Value{{"name", name}}));
  if (model.code != "RESOURCE_ALREADY_EXISTS" && refused(model)) return;
  const MlflowAnswer versions = server_.get(
      "model-versions/search", "filter=" + url_path(fmt::format("run_id='{}'", run.id)));
  if (refused(versions)) return;
  if (const Value* found = versions.body.find("model_versions"); found && found->is_list()) {
    for (const Value& version : found->list()) {
      if (version.get_or("name", "") == name && version.get_or("source", "") == source) return;
    }
  }
  const Value wanted{{"name", name},
                     {"source", source},
                     {"run_id", run.id},
                     {"description", "The best trial of " + head_.name}};
  refused(server_.post("model-versions/create", to_json(wanted)));
}

}  // namespace tune
