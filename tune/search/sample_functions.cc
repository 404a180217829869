#include "tune/search/sample_functions.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"

namespace tune {

namespace {

// Marks an error that already says which function it comes from.
class FunctionError : public Error {
 public:
  explicit FunctionError(const std::string& message) : Error(ErrorCode::kBadInput, message) {}
};

bool is_below(std::string_view path, std::string_view above) {
  return above.empty() ||
         (path.size() > above.size() && path.starts_with(above) && path[above.size()] == '/');
}

// The configuration as functions see it: reading a value computes it.
class LazyConfig : public Config {
 public:
  LazyConfig(Config drawn, const std::vector<SampleFunction>& functions)
      : Config(std::move(drawn)), functions_(functions), states_(functions.size()) {
    hook_.before_read = [this](std::string_view path) { prepare(path); };
  }
  LazyConfig(const LazyConfig&) = delete;
  LazyConfig& operator=(const LazyConfig&) = delete;

  Config computed() && {
    prepare({});
    return Config(std::move(*this));
  }

 private:
  enum class State : char { kWaiting, kRunning, kDone };

  void prepare(std::string_view path) {
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      const std::string& own = functions_[i].path;
      if (own == path || is_below(path, own)) {
        if (states_[i] == State::kRunning) fail_with_cycle(own);
        compute(i);
      } else if (is_below(own, path)) {
        // Of a map that is read as a whole, what is being computed right now is not there yet.
        compute(i);
      }
    }
  }

  void compute(std::size_t i) {
    if (states_[i] != State::kWaiting) return;
    states_[i] = State::kRunning;
    running_.push_back(functions_[i].path);
    try {
      set(functions_[i].path, functions_[i].function(*this));
    } catch (const FunctionError&) {
      throw;
    } catch (const std::exception& error) {
      throw FunctionError(
          fmt::format("sample_from of '{}' failed: {}", functions_[i].path, error.what()));
    }
    running_.pop_back();
    states_[i] = State::kDone;
  }

  [[noreturn]] void fail_with_cycle(const std::string& path) const {
    std::vector<std::string> cycle(std::find(running_.begin(), running_.end(), path),
                                   running_.end());
    cycle.push_back(path);
    throw FunctionError(fmt::format(
        "the functions of these values need each other in a cycle: {}: let one of them do without",
        join(cycle, " -> ")));
  }

  const std::vector<SampleFunction>& functions_;
  std::vector<State> states_;
  std::vector<std::string> running_;  // paths, innermost last
};

}  // namespace

void compute_functions(Config& config, const std::vector<SampleFunction>& functions) {
  if (functions.empty()) return;
  config = LazyConfig(std::move(config), functions).computed();
}

}  // namespace tune
