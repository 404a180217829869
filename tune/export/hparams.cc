#include "tune/export/hparams.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/json.h"
#include "core/protobuf.h"

namespace tune {

namespace {

// HParamsPluginData and api.proto of tensorboard/plugins/hparams; Value of google/protobuf.
enum PluginField { kExperiment = 2, kSessionStart = 3, kSessionEnd = 4 };
enum ExperimentField { kHparamInfos = 4, kMetricInfos = 5 };
enum HparamField { kName = 1, kType = 4, kDiscrete = 5, kInterval = 6 };
enum SessionField { kHparams = 1, kGroupName = 4, kStartTime = 5 };
enum class DataType { kUnset = 0, kString = 1, kBool = 2, kNumber = 3 };
enum class SessionStatus { kSuccess = 1, kFailure = 2, kRunning = 3 };

constexpr std::size_t kMaxListed =
    50;  // values of a choice that TensorBoard offers as boxes to tick

DataType type_of(const Value& value) {
  switch (value.type()) {
    case Value::Type::kBool:
      return DataType::kBool;
    case Value::Type::kInt:
    case Value::Type::kFloat:
      return DataType::kNumber;
    case Value::Type::kNull:
      return DataType::kUnset;
    default:
      return DataType::kString;
  }
}

// Nothing for a value that TensorBoard cannot show.
std::optional<ProtoWriter> shown(const Value& value) {
  ProtoWriter out;
  switch (value.type()) {
    case Value::Type::kNull:
      return std::nullopt;
    case Value::Type::kBool:
      out.varint(4, value.boolean() ? 1 : 0);
      return out;
    case Value::Type::kInt:
    case Value::Type::kFloat:
      if (!std::isfinite(value.number())) return std::nullopt;
      out.number(2, value.number());
      return out;
    case Value::Type::kString:
      out.text(3, value.string());
      return out;
    default:
      out.text(3, to_json(value));
      return out;
  }
}

struct Column {
  DataType type = DataType::kUnset;
  std::vector<Value> values = {};  // all there are; empty: more, or unknown
  std::optional<std::pair<double, double>> bounds = {};
};

Column column_of(const std::vector<Value>& values) {
  Column column{.type = type_of(values.front())};
  for (const Value& value : values) {
    if (type_of(value) != column.type) return {};
  }
  if (column.type != DataType::kUnset && values.size() <= kMaxListed) column.values = values;
  return column;
}

Column column_of(const SearchSpace& node) {
  if (node.is_constant()) return {.type = type_of(node.constant())};
  if (!node.is_domain()) return {};
  return std::visit(
      [](const auto& kind) -> Column {
        using Kind = std::decay_t<decltype(kind)>;
        if constexpr (requires { kind.low; }) {
          return {
              .type = DataType::kNumber,
              .bounds = std::pair(static_cast<double>(kind.low), static_cast<double>(kind.high))};
        } else if constexpr (std::is_same_v<Kind, Domain::Normal>) {
          return {.type = DataType::kNumber};
        } else if constexpr (requires { kind.values; }) {
          return kind.values.empty() ? Column{} : column_of(kind.values);
        }
        return {};
      },
      node.domain().kind());
}

// Where options of a choice differ, only what they share is told.
Column column_at(const SearchSpace& space, const std::string& path) {
  const std::vector<SearchSpace> nodes = space.nodes_at(path);
  if (nodes.empty()) return {};
  Column column = column_of(nodes.front());
  if (nodes.size() == 1) return column;
  column.values.clear();
  column.bounds.reset();
  for (const SearchSpace& node : nodes) {
    if (column_of(node).type != column.type) column.type = DataType::kUnset;
  }
  return column;
}

ProtoWriter hparam_info(const std::string& path, const Column& column) {
  ProtoWriter info;
  info.text(kName, path);
  if (column.type != DataType::kUnset) {
    info.varint(kType, static_cast<std::uint64_t>(column.type));
  }
  if (!column.values.empty()) {
    ProtoWriter list;
    for (const Value& value : column.values) {
      if (const auto one = shown(value)) list.message(1, *one);
    }
    info.message(kDiscrete, list);
  } else if (column.bounds) {
    ProtoWriter interval;
    interval.number(1, column.bounds->first);
    interval.number(2, column.bounds->second);
    info.message(kInterval, interval);
  }
  return info;
}

std::string plugin_data(PluginField field, const ProtoWriter& content) {
  ProtoWriter data;
  data.message(field, content);
  return data.bytes();
}

}  // namespace

std::string hparams_experiment(const SearchSpace& space, const std::vector<std::string>& metrics) {
  ProtoWriter experiment;
  for (const std::string& path : space.value_paths()) {
    experiment.message(kHparamInfos, hparam_info(path, column_at(space, path)));
  }
  for (const std::string& metric : metrics) {
    ProtoWriter name, info;
    name.text(2, metric);
    info.message(1, name);
    experiment.message(kMetricInfos, info);
  }
  return plugin_data(kExperiment, experiment);
}

std::string hparams_start(const Config& config, std::string_view trial_id, double time) {
  ProtoWriter session;
  for (const auto& [path, value] : config.leaves()) {
    const auto told = shown(*value);
    if (!told) continue;
    ProtoWriter entry;
    entry.text(1, path);
    entry.message(2, *told);
    session.message(kHparams, entry);
  }
  session.text(kGroupName, trial_id);
  session.number(kStartTime, time);
  return plugin_data(kSessionStart, session);
}

std::string hparams_end(TrialStatus status) {
  ProtoWriter session;
  const auto told = status == TrialStatus::kTerminated ? SessionStatus::kSuccess
                    : status == TrialStatus::kError    ? SessionStatus::kFailure
                                                       : SessionStatus::kRunning;
  session.varint(1, static_cast<std::uint64_t>(told));
  return plugin_data(kSessionEnd, session);
}

}  // namespace tune
