// The importers share this: the file they read, its lines, complaints and notes, and the domains
// that several tools have under other names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value.h"
#include "tune/spec/experiment_spec.h"
#include "tune/spec/import/import_sweep.h"
#include "tune/spec/yaml_tree.h"

namespace tune {

class ImportReader {
 public:
  // All must outlive it.
  ImportReader(const YamlTree& tree, ImportedSweep& out, std::vector<Complaint>& complaints,
               const FileBeside& beside)
      : tree_(tree), out_(out), complaints_(complaints), beside_(beside) {}

  const Value& root() const { return tree_.value; }
  // By key path, in which items of lists have their index.
  const Value* find(const std::string& path) const;
  // The value there as text, a number, or a whole number; otherwise a complaint and nothing.
  std::optional<std::string> text(const std::string& path);
  std::optional<double> number(const std::string& path);
  std::optional<std::int64_t> whole(const std::string& path);

  // Runs `import` on another file that this one names; what is refused there is refused here at
  // `path`, with the other file's name and line.
  void within_file(const std::string& path, const std::string& file,
                   const std::function<void(ImportReader& other)>& import);

  void refuse(const std::string& path, std::string why);
  void note(const std::string& path, const std::string& text);
  // Complains about every key of the map at `path` that is not known; those ignored are noted.
  void check_keys(const std::string& path, const std::vector<std::string>& known,
                  const std::vector<std::string>& ignored);

  void set(const std::string& path, Value value) { out_.sweep.set(path, std::move(value)); }
  // A parameter: its name is a key path of ours.
  void set_parameter(const std::string& name, Value value, const std::string& path);
  bool has_parameter(const std::string& name) const;

  // ---- Domains, as {name: [...]}
  static Value domain(const char* name, Value::List arguments);
  // A uniform draw rounded to multiples of q: refused when the bounds are none, as the draws would
  // be others.
  std::optional<Value> stepped(const std::string& path, const char* name, double low, double high,
                               double q);
  // Whole numbers, both bounds included; step 1 or more.
  std::optional<Value> whole_numbers(const std::string& path, std::int64_t low, std::int64_t high,
                                     std::int64_t step = 1);
  // Every value of a grid, both bounds included.
  std::optional<Value> listed(const std::string& path, double low, double high, double step,
                              bool are_whole);

 private:
  const YamlTree& tree_;
  ImportedSweep& out_;
  std::vector<Complaint>& complaints_;
  const FileBeside& beside_;
};

// The importers, each for the file whose kind it is.
void import_wandb(ImportReader& reader);
void import_determined(ImportReader& reader);
void import_nni(ImportReader& reader);
void import_nni_space(ImportReader& reader);  // search_space.json alone
void import_katib(ImportReader& reader);

}  // namespace tune
