#include "trainables/registry.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/worker_contract.h"
#include "trainables/worker.h"

namespace tune {
namespace {

// Filled by static constructors, in no particular order: kept sorted by name.
std::vector<TrainableEntry>& registry() {
  static std::vector<TrainableEntry> entries;
  return entries;
}

int run_registered(std::uint32_t index, int socket) {
  return run_worker(registry().at(index), socket);
}

}  // namespace

std::string short_type_name(const std::type_info& type) {
  int status = 0;
  char* demangled = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = demangled ? demangled : type.name();
  std::free(demangled);
  const std::size_t arguments = std::min(name.find('<'), name.size());
  const std::size_t scope = name.rfind("::", arguments);
  name = name.substr(scope == std::string::npos ? 0 : scope + 2, arguments);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

TrainableEntry function_entry(std::string name,
                              std::function<void(const Config&, Session&)> function) {
  TrainableEntry entry;
  entry.name = std::move(name);
  entry.can_save = true;  // known only when it reports with a save
  entry.is_function = true;
  entry.function = std::move(function);
  return entry;
}

RegisterTrainable::RegisterTrainable(TrainableEntry entry, const tune_plugin_info* (*)()) {
  std::vector<TrainableEntry>& entries = registry();
  const auto place = std::ranges::lower_bound(entries, entry.name, {}, &TrainableEntry::name);
  if (place != entries.end() && place->name == entry.name) {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("two trainables are registered as \"{}\"; rename one of them", entry.name));
  }
  entries.insert(place, std::move(entry));
}

const tune_plugin_info* plugin_info() {
  // Made at the first call, when every static constructor has run.
  static const std::vector<tune_plugin_trainable> trainables = [] {
    std::vector<tune_plugin_trainable> list;
    for (const TrainableEntry& entry : registry()) {
      list.push_back({entry.name.c_str(), entry.can_save, entry.is_function});
    }
    return list;
  }();
  static const tune_plugin_info info{kWorkerContract,
                                     static_cast<std::uint32_t>(trainables.size()),
                                     trainables.data(), &run_registered};
  return &info;
}

}  // namespace tune
