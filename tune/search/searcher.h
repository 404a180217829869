// Searcher: proposes configurations. Pure: no clock, file or thread; the same calls give the same
// proposals. Derive a custom one from it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/contract_values.h"
#include "core/ids.h"
#include "core/value.h"
#include "schedulers/trial_scheduler.h"
#include "tune/search/search_space.h"

namespace tune {

struct SearcherSetup {
  SearchSpace space;
  std::int64_t num_samples = 1;  // -1: no end
  std::vector<Config> points_to_evaluate = {};
  Objective objective = {};  // its seed is the experiment's
  // Comparisons that every configuration keeps (tune/search/where.h), checked already: "x < y".
  std::vector<std::string> where = {};
};

class Searcher {
 public:
  virtual ~Searcher() = default;
  // Once, before anything else. Throws Error (kBadInput) for a space it cannot search.
  virtual void configure(const SearcherSetup& setup) = 0;
  // A resumed experiment may ask for more samples than it began with; suggestions go on from there.
  virtual void set_num_samples(std::int64_t /*num_samples*/) {}
  // How many trials there will be; nothing: no end, or not known.
  virtual std::optional<std::uint64_t> total() const = 0;
  // The configuration of this trial; asked for 0, 1, 2 ... in order. Nothing: there are no more.
  virtual std::optional<Config> suggest(TrialNumber trial) = 0;
  virtual void result(TrialNumber /*trial*/, const ResultView& /*result*/) {}
  // `last` is null when the trial never reported. A trial that ended as kError and is tried again on
  // resume ends again: the newest end counts.
  virtual void end_trial(TrialNumber /*trial*/, TrialEnd /*end*/, const Reported* /*last*/) {}
  virtual std::string save() const = 0;              // MessagePack
  virtual void restore(std::string_view state) = 0;  // Error (kProtocol) when it is not its own
};

// A searcher as a value, as SchedulerSpec is for schedulers.
class SearcherSpec {
 public:
  using Make = std::function<std::unique_ptr<Searcher>()>;
  SearcherSpec();  // basic_variant()
  SearcherSpec(std::string name, Config parameters, Make make)
      : name_(std::move(name)), parameters_(std::move(parameters)), make_(std::move(make)) {}
  const std::string& name() const { return name_; }
  const Config& parameters() const { return parameters_; }
  std::unique_ptr<Searcher> make() const { return make_(); }

 private:
  std::string name_;
  Config parameters_;
  Make make_;
};

struct BasicVariantOptions {
  bool constant_grid_search = false;  // draw random values once a sample, not for every grid cell
};
// Grid and random search mixed: the default.
SearcherSpec basic_variant(BasicVariantOptions options = {});

template <class T, class... Args>
SearcherSpec searcher(Args... args) {
  return SearcherSpec("", {}, [args...] { return std::make_unique<T>(args...); });
}

SearcherSpec searcher_from_config(const std::string& name, const Config& parameters);

}  // namespace tune
