#include "trainables/torch/configured_options.h"

#include <set>
#include <sstream>
#include <string>

#include "trainables/torch/parameter_groups.h"
#include "trainables/torch/torch_error.h"

namespace tune {
namespace {

constexpr const char* kConfiguredKey = "tune_configured";
constexpr const char* kGroupsKey = "tune_groups";  // those with names, by their index
constexpr const char* kNameKey = "name";
constexpr const char* kOptionsKey = "options";

OptionFields read_fields(torch::serialize::InputArchive& archive) {
  OptionFields fields;
  for (const std::string& key : archive.keys()) archive.read(key, fields[key]);
  return fields;
}

// Archives can be read only when they have been written.
void read_back(torch::serialize::OutputArchive& written, torch::serialize::InputArchive& archive) {
  std::stringstream bytes;
  written.save_to(bytes);
  archive.load_from(bytes);
}

void set_fields(torch::optim::OptimizerOptions& options, const OptionFields& fields) {
  torch::serialize::OutputArchive written;
  for (const auto& [name, value] : fields) written.write(name, value);
  torch::serialize::InputArchive archive;
  read_back(written, archive);
  options.serialize(archive);
}

using FieldNames = std::set<std::string>;

FieldNames changed_names(const OptionFields& before, const OptionFields& now) {
  FieldNames names;
  for (const auto& [name, value] : now) {
    const auto found = before.find(name);
    if (found != before.end() && !(found->second == value)) names.insert(name);
  }
  return names;
}

}  // namespace

OptionFields fields_of(const torch::optim::OptimizerOptions& options) {
  torch::serialize::OutputArchive written;
  try {
    options.serialize(written);
  } catch (const c10::Error&) {
    return {};  // LibTorch's own classes all can
  }
  torch::serialize::InputArchive archive;
  read_back(written, archive);
  return read_fields(archive);
}

void save_configured_options(torch::serialize::OutputArchive& archive,
                             const torch::optim::Optimizer& optimizer) {
  const auto write_fields = [&](torch::serialize::OutputArchive& into, const char* key,
                                const torch::optim::OptimizerOptions& options) {
    torch::serialize::OutputArchive fields(archive.compilation_unit());
    for (const auto& [name, value] : fields_of(options)) fields.write(name, value);
    into.write(key, fields);
  };
  write_fields(archive, kConfiguredKey, optimizer.defaults());
  torch::serialize::OutputArchive groups(archive.compilation_unit());
  for (std::size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    const NamedGroup* named = named_group(optimizer.param_groups()[i]);
    if (named == nullptr) continue;
    torch::serialize::OutputArchive group(archive.compilation_unit());
    group.write(kNameKey, c10::IValue(named->name()));
    write_fields(group, kOptionsKey, named->configured());
    groups.write(std::to_string(i), group);
  }
  archive.write(kGroupsKey, groups);
}

namespace {

// The fields of group i that were configured with another value since the checkpoint was saved; of
// a group without a name, there or here, those of the optimizer.
FieldNames changed_in_group(std::size_t i, const torch::optim::Optimizer& optimizer,
                       torch::serialize::InputArchive& archive, const FieldNames& of_optimizer) {
  const NamedGroup* named = named_group(optimizer.param_groups()[i]);
  torch::serialize::InputArchive groups;
  torch::serialize::InputArchive group;
  const bool is_named_there =
      archive.try_read(kGroupsKey, groups) && groups.try_read(std::to_string(i), group);
  if (named == nullptr || !is_named_there) return of_optimizer;
  c10::IValue name;
  group.read(kNameKey, name);
  if (name.toStringRef() != named->name()) {
    bad_input("the checkpoint's group " + std::to_string(i) + " of parameters is named " +
              name.toStringRef() + ", the optimizer's is " + named->name() +
              ": make the groups in the same order");
  }
  torch::serialize::InputArchive fields;
  group.read(kOptionsKey, fields);
  return changed_names(read_fields(fields), fields_of(named->configured()));
}

}  // namespace

void load_but_configured_options(torch::serialize::InputArchive& archive,
                                 torch::optim::Optimizer& optimizer) {
  torch::serialize::InputArchive saved;
  FieldNames of_optimizer;
  if (archive.try_read(kConfiguredKey, saved)) {
    of_optimizer = changed_names(read_fields(saved), fields_of(optimizer.defaults()));
  }
  std::vector<FieldNames> changed;
  std::vector<OptionFields> own;
  for (std::size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    changed.push_back(changed_in_group(i, optimizer, archive, of_optimizer));
    own.push_back(fields_of(optimizer.param_groups()[i].options()));
  }
  optimizer.load(archive);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (changed[i].empty()) continue;
    torch::optim::OptimizerOptions& options = optimizer.param_groups()[i].options();
    OptionFields fields = fields_of(options);
    for (const std::string& name : changed[i]) fields[name] = own[i].at(name);
    set_fields(options, fields);
  }
}

}  // namespace tune
