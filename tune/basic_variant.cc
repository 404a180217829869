#include "tune/basic_variant.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/random.h"
#include "core/strings.h"
#include "tune/sample_functions.h"

namespace tune {

namespace {

constexpr std::uint64_t kMaxCells = std::uint64_t{1} << 40;  // of one sample's grid

const std::vector<Value>& grid_values(const Domain& domain) {
  return std::get<Domain::Grid>(domain.kind()).values;
}

}  // namespace

void BasicVariantSearcher::configure(const SearcherSetup& setup) {
  space_ = setup.space;
  num_samples_ = setup.num_samples;
  seed_ = setup.objective.seed;
  presets_ = setup.points_to_evaluate;
  check_presets();
  std::uint64_t cells = 1;
  for (const auto& [path, domain] : space_.domains()) {
    if (!domain->is_grid()) continue;
    grids_.push_back({path, grid_values(*domain)});
    cells *= grids_.back().values.size();
    if (cells > kMaxCells) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("the grid has more than {} cells: use choice for some of its keys",
                              kMaxCells));
    }
  }
  std::sort(grids_.begin(), grids_.end(),
            [](const Grid& a, const Grid& b) { return a.path < b.path; });
  preset_begins_ = {0};
  for (std::uint64_t i = 0; i < presets_.size(); ++i) {
    preset_begins_.push_back(preset_begins_.back() + cells_of(i));
  }
}

void BasicVariantSearcher::check_presets() const {
  for (std::size_t i = 0; i < presets_.size(); ++i) {
    for (const auto& [path, value] : presets_[i].leaves()) {
      // The path of a domain or constant, or below a constant or domain that holds maps.
      std::string_view known = path;
      const SearchSpace* node = space_.find(known);
      while (node == nullptr && known.find('/') != std::string_view::npos) {
        known = known.substr(0, known.rfind('/'));
        node = space_.find(known);
        if (node != nullptr && node->is_map()) node = nullptr;
      }
      if (node != nullptr) continue;
      std::vector<std::string> paths;
      for (const auto& [name, domain] : space_.domains()) paths.push_back(name);
      const std::string near = nearest(path, paths);
      throw Error(ErrorCode::kBadInput,
                  fmt::format("points_to_evaluate {}: there is no '{}' in config{}", i + 1, path,
                              near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near)));
    }
  }
}

const Config* BasicVariantSearcher::preset_of(std::uint64_t sample) const {
  return sample < presets_.size() ? &presets_[sample] : nullptr;
}

// A preset's grid keys leave that sample's grid.
std::uint64_t BasicVariantSearcher::cells_of(std::uint64_t sample) const {
  const Config* preset = preset_of(sample);
  std::uint64_t cells = 1;
  for (const Grid& grid : grids_) {
    if (preset == nullptr || !preset->contains(grid.path)) cells *= grid.values.size();
  }
  return cells;
}

std::optional<std::uint64_t> BasicVariantSearcher::total() const {
  if (num_samples_ < 0) return std::nullopt;
  const auto samples = static_cast<std::uint64_t>(num_samples_);
  const std::uint64_t preset = std::min<std::uint64_t>(samples, presets_.size());
  return preset_begins_[preset] + (samples - preset) * cells_of(presets_.size());
}

std::optional<BasicVariantSearcher::Cell> BasicVariantSearcher::cell_of(std::uint64_t trial) const {
  if (const auto all = total(); all && trial >= *all) return std::nullopt;
  const std::uint64_t plain = preset_begins_.back();
  if (trial < plain) {
    const auto after = std::upper_bound(preset_begins_.begin(), preset_begins_.end(), trial);
    const auto sample = static_cast<std::uint64_t>(after - preset_begins_.begin() - 1);
    return Cell{sample, trial - preset_begins_[sample]};
  }
  const std::uint64_t cells = cells_of(presets_.size());
  return Cell{presets_.size() + (trial - plain) / cells, (trial - plain) % cells};
}

std::optional<Config> BasicVariantSearcher::suggest(TrialNumber trial) {
  const std::optional<Cell> cell = cell_of(trial.value);
  if (!cell) return std::nullopt;
  const Config* preset = preset_of(cell->sample);
  std::map<std::string, Value> chosen;
  std::uint64_t rest = cell->index;
  for (const Grid& grid : grids_) {  // the first varies fastest
    if (preset != nullptr && preset->contains(grid.path)) continue;
    chosen[grid.path] = grid.values[rest % grid.values.size()];
    rest /= grid.values.size();
  }
  const std::uint64_t number = options_.constant_grid_search ? cell->sample : trial.value;
  for (const auto& [path, domain] : space_.domains()) {
    if (preset != nullptr && preset->contains(path)) continue;
    if (domain->is_grid() || domain->is_function()) continue;
    // A stream for each key: a new key changes no other's draws.
    RandomStream random(seed_, "config/" + path, number);
    chosen[path] = domain->draw(random);
  }
  if (preset != nullptr) {
    for (const auto& [path, value] : preset->leaves()) chosen[path] = *value;
  }
  return assemble(space_, std::move(chosen));
}

std::string BasicVariantSearcher::save() const {
  return encoded(num_samples_);
}

void BasicVariantSearcher::restore(std::string_view state) {
  num_samples_ = decoded<std::int64_t>(state);
}

std::string experiment_tag(TrialNumber trial, const SearchSpace& space, const Config& config) {
  std::string tag = fmt::format("{}", trial.value);
  const char* separator = "_";
  for (const auto& [path, domain] : space.domains()) {
    const Value* value = config.find(path);
    if (value == nullptr) continue;
    std::string text = value->is_string() ? value->string() : to_json(*value);
    if (value->type() == Value::Type::kFloat) text = fmt::format("{:.6g}", value->number());
    tag += fmt::format("{}{}={}", separator, path, text);
    separator = ",";
  }
  return tag;
}

// ---- As a value
// -----------------------------------------------------------------------------------

SearcherSpec::SearcherSpec() : SearcherSpec(basic_variant()) {}

SearcherSpec basic_variant(BasicVariantOptions options) {
  Config parameters;
  if (options.constant_grid_search) parameters.set("constant_grid_search", true);
  return SearcherSpec("basic_variant", std::move(parameters),
                      [options] { return std::make_unique<BasicVariantSearcher>(options); });
}

SearcherSpec searcher_from_config(const std::string& name, const Config& parameters) {
  if (name != "basic_variant") {
    throw Error(ErrorCode::kBadInput,
                fmt::format("there is no searcher '{}': known is: basic_variant", name));
  }
  for (const Member& member : parameters.map()) {
    if (member.key == "constant_grid_search") continue;
    throw Error(ErrorCode::kBadInput,
                fmt::format("searcher basic_variant: there is no parameter '{}': known is: "
                            "constant_grid_search",
                            member.key));
  }
  return basic_variant({parameters.get_or("constant_grid_search", false)});
}

}  // namespace tune
