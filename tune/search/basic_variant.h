// Grid and random search mixed: the searcher behind tune::basic_variant. Trial k's draws depend on
// the seed and k alone; a suggestion costs the same whatever the size of the grid.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tune/search/sample_functions.h"
#include "tune/search/searcher.h"

namespace tune {

class BasicVariantSearcher : public Searcher {
 public:
  explicit BasicVariantSearcher(BasicVariantOptions options) : options_(options) {}

  void configure(const SearcherSetup& setup) override;
  void set_num_samples(std::int64_t num_samples) override;
  std::optional<std::uint64_t> total() const override;
  std::optional<Config> suggest(TrialNumber trial) override;
  std::string save() const override;
  void restore(std::string_view state) override;

 private:
  struct Grid {
    std::string path;
    std::vector<Value> values;
  };
  struct Drawn {
    std::string path;
    std::string purpose;  // of its random stream
    Domain domain;
  };
  // Where a trial stands: its sample, and the cell of the sample's grid.
  struct Cell {
    std::uint64_t sample = 0;
    std::uint64_t index = 0;
  };
  const Config* preset_of(std::uint64_t sample) const;
  std::uint64_t cells_of(const Config* preset) const;
  std::optional<Cell> cell_of(std::uint64_t trial) const;
  void sort_out(const SearchSpace& space);
  void check_counts() const;

  BasicVariantOptions options_;
  std::int64_t num_samples_ = 1;
  std::uint64_t seed_ = 0;
  std::vector<Config> presets_;
  Config frame_;                        // every key of the space; null where a domain stands
  std::vector<std::string> constants_;  // key paths
  std::vector<Grid> grids_;             // sorted by path
  std::vector<Drawn> drawn_;
  std::vector<SampleFunction> functions_;
  std::uint64_t plain_cells_ = 1;  // of a sample without preset
  std::vector<std::uint64_t> preset_begins_ = {
      0};  // first trial of each preset, and after them all
};

}  // namespace tune
