// The trainables a process can run, and how a plugin hands them over.
//
// A plugin (.so) exports one C function, `tune_plugin`, that returns the version of the worker
// contract it was built with and its factories. The worker loop is compiled into the plugin and
// speaks only that contract over a socket, so no C++ type crosses the border.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "core/resources.h"
#include "trainables/session.h"
#include "trainables/trainable.h"

namespace tune {

struct TrainableEntry {
  std::string name;
  bool can_save = false;
  bool is_function = false;
  // Exactly one is set.
  std::function<std::unique_ptr<Trainable>()> make;
  std::function<void(const Config&, Session&)> function;
};

// A trainable that says itself what each of its trials needs, such as TorchTrainer's as_trainable.
struct SizedTrainable {
  TrainableEntry entry;
  Resources resources;
  std::string instead;  // of resources_per_trial, for the error when it is given as well
};

std::string short_type_name(const std::type_info& type);  // "Mnist" for app::Mnist

// Whether T (or a base of it) overrides both save and load.
template <class T>
constexpr bool overrides_save() {
  using Save = void (Trainable::*)(const std::filesystem::path&);
  if constexpr (requires { &T::save; &T::load; }) {
    return !std::is_same_v<decltype(&T::save), Save> && !std::is_same_v<decltype(&T::load), Save>;
  } else {
    return true;  // not reachable from here (protected, overloaded), but written
  }
}

template <class T>
TrainableEntry trainable_entry(std::string name) {
  static_assert(std::is_base_of_v<Trainable, T>, "derive from tune::Trainable");
  TrainableEntry entry;
  entry.name = std::move(name);
  entry.can_save = overrides_save<T>();
  entry.make = [] { return std::make_unique<T>(); };
  return entry;
}

TrainableEntry function_entry(std::string name,
                              std::function<void(const Config&, Session&)> function);

extern "C" {
struct tune_plugin_trainable {
  const char* name;
  std::uint8_t can_save;
  std::uint8_t is_function;
};
struct tune_plugin_info {
  std::uint32_t protocol_version;
  std::uint32_t count;
  const tune_plugin_trainable* trainables;
  // Runs trainable number `index` over the worker socket until its attempt is over; returns the
  // exit code of the process. Never throws.
  int (*run_worker)(std::uint32_t index, int socket);
};
}

const tune_plugin_info* plugin_info();

struct RegisterTrainable {
  // Throws Error (kBadInput) when the name is taken. `plugin` is there to be exported: see below.
  explicit RegisterTrainable(TrainableEntry entry, const tune_plugin_info* (*plugin)() = nullptr);
};

}  // namespace tune

// The function that a plugin exports. Inline, so that a library has it where one of the macros
// below uses it.
extern "C" __attribute__((visibility("default"))) inline const ::tune::tune_plugin_info*
tune_plugin() {
  return ::tune::plugin_info();
}

#define TUNE_DETAIL_JOIN2(a, b) a##b
#define TUNE_DETAIL_JOIN(a, b) TUNE_DETAIL_JOIN2(a, b)
// Makes a class known to YAML sweeps under its own name. At namespace scope of one source file.
#define TUNE_TRAINABLE(T)                                                                     \
  namespace {                                                                                 \
  const ::tune::RegisterTrainable TUNE_DETAIL_JOIN(tune_register_, __COUNTER__){              \
      ::tune::trainable_entry<T>(#T), &::tune_plugin};                                        \
  }
// The same for a function void f(const tune::Config&, tune::Session&).
#define TUNE_FUNCTION(f)                                                                      \
  namespace {                                                                                 \
  const ::tune::RegisterTrainable TUNE_DETAIL_JOIN(tune_register_, __COUNTER__){              \
      ::tune::function_entry(#f, f), &::tune_plugin};                                         \
  }
