#include "tune/spec/import/import_sweep.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "tune/spec/import/import_reader.h"
#include "tune/spec/yaml_tree.h"

namespace tune {

namespace {

struct Kind {
  const char* name;
  void (*import)(ImportReader& reader);
};

bool holds_nni_types(const Value& map) {
  return !map.map().empty() && map.map()[0].value.is_map() &&
         map.map()[0].value.contains("_type");
}

// By the keys that only this tool has.
const Kind* kind_of(const Value& root) {
  static const Kind kWandb{"W&B", import_wandb};
  static const Kind kDetermined{"Determined", import_determined};
  static const Kind kNni{"NNI", import_nni};
  static const Kind kNniSpace{"NNI", import_nni_space};
  static const Kind kKatib{"Katib", import_katib};
  if (!root.is_map()) return nullptr;
  if (root.contains("parameters") && root.contains("method")) return &kWandb;
  if (root.contains("searcher") && root.contains("hyperparameters")) return &kDetermined;
  for (const char* key : {"searchSpace", "search_space", "searchSpaceFile", "search_space_file",
                          "trialCommand", "trial_command", "searchSpacePath", "authorName"}) {
    if (root.contains(key)) return &kNni;
  }
  if (holds_nni_types(root)) return &kNniSpace;
  const Value* kind = root.find("kind");
  const bool is_experiment =
      kind != nullptr && kind->is_string() && kind->string() == "Experiment";
  return is_experiment && root.contains("spec") ? &kKatib : nullptr;
}

// JSON is YAML; a map that is worth lines gets one for each of its keys.
void append_key(std::string& out, const Member& member) {
  const bool is_open = member.key == "config" && member.value.is_map();
  if (!is_open) {
    out += fmt::format("{}: {}\n", member.key, to_json(member.value));
    return;
  }
  out += member.key + ":\n";
  for (const Member& one : member.value.map()) {
    std::string key;
    append_json_text(key, one.key);
    out += fmt::format("  {}: {}\n", key, to_json(one.value));
  }
}

}  // namespace

ImportedSweep import_sweep(std::string_view text, const std::string& source,
                           const FileBeside& beside) {
  std::vector<Complaint> complaints;
  const YamlTree tree = parse_yaml(text, "", YamlRules{}, complaints);
  const Kind* kind = kind_of(tree.value);
  if (kind == nullptr && complaints.empty()) {
    complaints.push_back(
        {.message =
             "is not a sweep of W&B (method, parameters), Determined (searcher, "
             "hyperparameters), NNI (searchSpace, trialCommand) or Katib (kind: Experiment)"});
  }
  ImportedSweep imported;
  if (kind != nullptr) {
    imported.from = kind->name;
    ImportReader reader(tree, imported, complaints, beside);
    kind->import(reader);
  }
  for (Complaint& complaint : complaints) {
    const auto line = tree.lines.find(complaint.path);
    if (complaint.line == 0 && line != tree.lines.end()) complaint.line = line->second;
  }
  if (!complaints.empty()) throw_complaints(source, complaints);
  return imported;
}

std::string sweep_text(const ImportedSweep& imported) {
  std::string text = fmt::format("# Imported from {}.\n", imported.from);
  for (const std::string& note : imported.notes) text += fmt::format("# {}\n", note);
  // The program comes first, then the search.
  for (const char* first : {"command", "program", "report", "config"}) {
    for (const Member& member : imported.sweep.map()) {
      if (member.key == first) append_key(text, member);
    }
  }
  for (const Member& member : imported.sweep.map()) {
    const bool is_written = member.key == "command" || member.key == "program" ||
                            member.key == "report" || member.key == "config";
    if (!is_written) append_key(text, member);
  }
  return text;
}

}  // namespace tune
