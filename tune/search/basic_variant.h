// Grid and random search mixed: the searcher behind tune::basic_variant. Trial k's draws depend on
// the seed and k alone; a suggestion costs the same whatever the size of the grid.
//
// Each key has a stream of its own, also a key within an option of a choice, so that its value is
// the same whatever else is searched. A configuration that breaks `where` is drawn anew as a whole:
// the draws of the second try, the third ... come from streams of their own. Cells of the grid that
// break it whatever is drawn are left out and not counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tune/search/sample_functions.h"
#include "tune/search/searcher.h"
#include "tune/search/where.h"

namespace tune {

class BasicVariantSearcher : public Searcher {
 public:
  explicit BasicVariantSearcher(BasicVariantOptions options) : options_(options) {}

  void configure(const SearcherSetup& setup) override;
  bool takes_several_objectives() const override { return true; }
  void set_num_samples(std::int64_t num_samples) override;
  std::optional<std::uint64_t> total() const override;
  std::optional<Config> suggest(TrialNumber trial) override;
  // The one of points_to_evaluate that a trial takes its values from; nothing: none.
  std::optional<std::size_t> given_to(TrialNumber trial) const;
  std::string save() const override;
  void restore(std::string_view state) override;

 private:
  struct Grid {
    std::string path;
    std::vector<Value> values;
  };
  // A domain of the space, grids too.
  struct Drawn {
    std::string path;
    std::string purpose;  // of its random stream
    Domain domain;
    std::optional<Condition> condition;
  };
  // The cells of a sample's grid that keep `where`.
  struct Cells {
    std::uint64_t count = 1;
    std::vector<std::uint32_t> kept = {};  // their indices in the whole grid; empty: all of it
    std::uint64_t index(std::uint64_t cell) const { return kept.empty() ? cell : kept[cell]; }
  };
  // Where a trial stands: its sample, and the cell of the sample's grid.
  struct Place {
    std::uint64_t sample = 0;
    std::uint64_t cell = 0;  // of the whole grid
  };
  const Config* preset_of(std::uint64_t sample) const;
  Cells cells_of(const Config* preset) const;
  bool where_names_grids() const;
  std::uint64_t all_cells_of(const Config* preset) const;
  // Sets what no stream draws: the values of the cell, and the constants of the preset.
  void set_cell(Config& config, std::uint64_t cell, const Config* preset) const;
  std::optional<Place> place_of(std::uint64_t trial) const;
  void sort_out(const SearchSpace& space);
  void check_counts() const;
  void check_draws() const;
  // The configuration of one try, with null for what `functions` are still to compute.
  Config draw_config(const Place& place, std::uint64_t trial, int attempt,
                     std::vector<SampleFunction>& functions) const;

  BasicVariantOptions options_;
  std::int64_t num_samples_ = 1;
  std::uint64_t seed_ = 0;
  std::vector<Config> presets_;
  Where where_;
  Config frame_;                        // every key of the space; null where a domain stands
  std::vector<std::string> constants_;  // key paths
  std::vector<Grid> grids_;             // sorted by path
  std::vector<Drawn> drawn_;
  Cells plain_cells_;  // of a sample without preset
  std::vector<Cells> preset_cells_;
  std::vector<std::uint64_t> preset_begins_ = {
      0};  // first trial of each preset, and after them all
};

}  // namespace tune
