#include "tune/spec/python_options.h"

#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "core/agent/python_command.h"
#include "core/error.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr const char* kExample =
    "name the file or module and the class or function in it, as in "
    "train.py:Train";

void complain(std::vector<Complaint>& complaints, const char* key, std::string message) {
  complaints.push_back({.path = key, .message = std::move(message)});
}

// `preload: torch` or a list of such.
void read_preload(OptionReader& reader, std::vector<std::string>& modules) {
  const Value* found = reader.take("preload");
  if (found == nullptr) return;
  const Value::List all = found->is_list() ? found->list() : Value::List{*found};
  for (const Value& module : all) {
    if (module.is_string()) {
      modules.push_back(module.string());
    } else {
      reader.complain("preload", fmt::format("expected names of modules, as in [torch, mydata], "
                                             "found {}",
                                             describe_value(module)));
    }
  }
}

}  // namespace

std::optional<PythonCall> read_python(OptionReader& reader) {
  PythonCall python;
  reader.read("python", python.target);
  read_preload(reader, python.preload);
  reader.read("interpreter", python.interpreter);
  if (!python.target.empty()) return python;
  for (const auto& [key, is_given] : {std::pair{"preload", !python.preload.empty()},
                                      std::pair{"interpreter", !python.interpreter.empty()}}) {
    if (is_given) reader.complain(key, fmt::format("is for Python trainables only: {}", kExample));
  }
  return std::nullopt;
}

void find_python(PythonCall& python, const fs::path& base, std::vector<Complaint>& complaints) {
  const std::size_t colon = python.target.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == python.target.size()) {
    return complain(complaints, "python",
                    fmt::format("'{}' names no trainable: {}", python.target, kExample));
  }
  const std::string name = trainable_name(python);
  const std::string file = python_file(python);
  if (!file.empty()) {
    const fs::path full = (base / file).lexically_normal();
    python.target = full.string() + ":" + name;
    std::error_code ignored;
    if (!fs::is_regular_file(full, ignored)) {
      complain(complaints, "python",
               fmt::format("there is no file {} ({} is relative to {}): correct the path",
                           full.string(), file, base.string()));
    }
  }
  try {
    python.interpreter = find_interpreter(python.interpreter);
  } catch (const Error& error) {
    complain(complaints, python.interpreter.empty() ? "python" : "interpreter", error.what());
  }
}

std::string trainable_name(const PythonCall& python) {
  return python.target.substr(python.target.rfind(':') + 1);
}

std::string python_file(const PythonCall& python) {
  const std::string place = python.target.substr(0, python.target.rfind(':'));
  return place.ends_with(".py") ? place : "";
}

std::string trainable_file(const ExperimentSpec& spec) {
  return spec.python ? python_file(*spec.python) : spec.plugin;
}

std::vector<std::string> zygote_command(const PythonCall& python) {
  return python_command({python.target, python.preload, python.interpreter});
}

void take_keys_of_python(std::vector<Complaint>& complaints) {
  for (Complaint& complaint : complaints) {
    for (const std::string key : {"python", "preload"}) {
      if (!complaint.path.empty() || !complaint.message.starts_with(key + ": ")) continue;
      complaint.path = key;
      complaint.message.erase(0, key.size() + 2);
    }
  }
}

Value to_value(const PythonCall& python) {
  return Value{
      {"target", python.target}, {"preload", python.preload}, {"interpreter", python.interpreter}};
}

PythonCall python_from_value(const Value& value) {
  return {value.get<std::string>("target"), value.get<std::vector<std::string>>("preload"),
          value.get<std::string>("interpreter")};
}

}  // namespace tune
