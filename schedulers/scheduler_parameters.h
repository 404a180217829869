// SchedulerParameters: what a scheduler was given in YAML, read key by key. Pure.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/value.h"
#include "schedulers/trial_scheduler.h"

namespace tune {

class SchedulerParameters {
 public:
  // Throws Error (kBadInput) that names a key which is not known, with the nearest one. `written`
  // outlives this.
  SchedulerParameters(const char* scheduler, const Config& written,
                      const std::vector<std::string>& known);

  bool contains(const char* key) const { return written_.contains(key); }

  // Each leaves `value` as it is when the key is not there, and throws Error (kBadInput) for a
  // value of another type or word.
  template <class T>
  void read(const char* key, T& value) const {
    value = written_.get_or(key, value);
  }
  template <class T>
  void read(const char* key, T& value, std::pair<const char*, std::type_identity_t<T>> first,
            std::pair<const char*, std::type_identity_t<T>> second) const {
    if (!contains(key)) return;
    const auto text = written_.get<std::string>(key);
    for (const auto& [name, named] : {first, second}) {
      if (text == name) return void(value = named);
    }
    refuse_word(key, text, first.first, second.first);
  }
  void read_objective(std::string& metric, std::optional<Mode>& mode) const;

  // "did you mean 'asha'?", or all that are known.
  static std::string suggestion(const std::string& wrong, const std::vector<std::string>& known);

 private:
  [[noreturn]] void refuse_word(const char* key, const std::string& found, const char* first,
                                const char* second) const;

  const char* scheduler_;
  const Config& written_;
};

// Ray Tune knows ASHA as asha, ASHAScheduler, AsyncHyperBand, async_hyperband and more: upper case,
// underscores and the words Scheduler and Rule at the end do not matter.
std::string plain_scheduler_name(const std::string& name);

}  // namespace tune
