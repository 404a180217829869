#include "trainables/torch/configured_options.h"

#include <set>
#include <sstream>

namespace tune {
namespace {

constexpr const char* kConfiguredKey = "tune_configured";

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

std::set<std::string> changed_names(const OptionFields& before, const OptionFields& now) {
  std::set<std::string> names;
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
  torch::serialize::OutputArchive configured(archive.compilation_unit());
  for (const auto& [name, value] : fields_of(optimizer.defaults())) configured.write(name, value);
  archive.write(kConfiguredKey, configured);
}

void load_but_configured_options(torch::serialize::InputArchive& archive,
                                 torch::optim::Optimizer& optimizer) {
  torch::serialize::InputArchive saved;
  std::set<std::string> changed;
  if (archive.try_read(kConfiguredKey, saved)) {
    changed = changed_names(read_fields(saved), fields_of(optimizer.defaults()));
  }
  if (changed.empty()) return optimizer.load(archive);
  std::vector<OptionFields> own;
  for (const auto& group : optimizer.param_groups()) own.push_back(fields_of(group.options()));
  optimizer.load(archive);
  for (std::size_t i = 0; i < own.size(); ++i) {
    torch::optim::OptimizerOptions& options = optimizer.param_groups()[i].options();
    OptionFields fields = fields_of(options);
    for (const std::string& name : changed) fields[name] = own[i].at(name);
    set_fields(options, fields);
  }
}

}  // namespace tune
