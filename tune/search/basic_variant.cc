#include "tune/search/basic_variant.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "core/random.h"
#include "core/strings.h"
#include "tune/search/sample_functions.h"

namespace tune {

namespace {

// Trial numbers have 32 bits.
constexpr std::uint64_t kMaxTrials = std::numeric_limits<std::uint32_t>::max();
constexpr const char* kStateName = "basic_variant";

// What a snapshot keeps: all else follows from the setup.
struct State {
  std::string name;
  std::int64_t num_samples = 1;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.name, s.num_samples);
  }
};

// The product, or just above kMaxTrials when it is larger.
std::uint64_t bounded_product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > kMaxTrials / b) return kMaxTrials + 1;
  return a * b;
}

Value frame_of(const SearchSpace& space) {
  if (space.is_domain()) return {};
  if (space.is_constant()) return space.constant();
  Value::Map map;
  for (const SpaceMember& member : space.members()) {
    map.emplace_back(member.key, frame_of(member.value));
  }
  return Value::make_map(std::move(map));
}

void collect_constants(const SearchSpace& space, const std::string& path,
                       std::vector<std::string>& paths) {
  if (space.is_constant()) paths.push_back(path);
  if (!space.is_map()) return;
  for (const SpaceMember& member : space.members()) {
    collect_constants(member.value, path.empty() ? member.key : path + "/" + member.key, paths);
  }
}

// Every value of a preset must replace a domain or a constant.
void check_preset(const SearchSpace& space, const Value& preset, const std::string& path,
                  std::size_t index) {
  for (const Member& member : preset.map()) {
    const std::string below = path.empty() ? member.key : path + "/" + member.key;
    const SearchSpace* node = space.find(member.key);
    if (node == nullptr) {
      std::vector<std::string> keys;
      for (const SpaceMember& known : space.members()) keys.push_back(known.key);
      const std::string near = nearest(member.key, keys);
      throw Error(ErrorCode::kBadInput,
                  fmt::format("points_to_evaluate/{}: there is no '{}' in config{}", index, below,
                              near.empty() ? fmt::format(", there are: {}", join(keys, ", "))
                                           : fmt::format(" (did you mean '{}'?)", near)));
    }
    if (!node->is_map()) continue;
    if (!member.value.is_map()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("points_to_evaluate/{}: '{}' is a map in config, found {}", index,
                              below, to_json(member.value)));
    }
    check_preset(*node, member.value, below, index);
  }
}

}  // namespace

void BasicVariantSearcher::configure(const SearcherSetup& setup) {
  if (!setup.space.is_map()) {
    throw Error(ErrorCode::kBadInput, "config must be a map of parameters, as in {lr: 0.1}");
  }
  num_samples_ = setup.num_samples;
  seed_ = setup.objective.seed;
  presets_ = setup.points_to_evaluate;
  for (std::size_t i = 0; i < presets_.size(); ++i) check_preset(setup.space, presets_[i], {}, i);
  sort_out(setup.space);
  plain_cells_ = cells_of(nullptr);
  preset_begins_ = {0};
  for (const Config& preset : presets_) {
    preset_begins_.push_back(preset_begins_.back() + cells_of(&preset));
  }
  check_counts();
}

void BasicVariantSearcher::sort_out(const SearchSpace& space) {
  frame_ = Config(frame_of(space));
  constants_.clear();
  collect_constants(space, {}, constants_);
  grids_.clear();
  drawn_.clear();
  functions_.clear();
  for (const auto& [path, domain] : space.domains()) {
    if (const auto* grid = std::get_if<Domain::Grid>(&domain->kind())) {
      grids_.push_back({path, grid->values});
    } else if (const auto* from = std::get_if<Domain::SampleFrom>(&domain->kind())) {
      functions_.push_back({path, from->function});
    } else {
      // A stream for each key: a new key changes no other's draws.
      drawn_.push_back({path, "config/" + path, *domain});
    }
  }
  std::sort(grids_.begin(), grids_.end(),
            [](const Grid& a, const Grid& b) { return a.path < b.path; });
}

void BasicVariantSearcher::check_counts() const {
  if (num_samples_ > 0 && presets_.size() > static_cast<std::uint64_t>(num_samples_)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("points_to_evaluate: {} configurations do not fit into num_samples {}: "
                            "raise num_samples to at least {}",
                            presets_.size(), num_samples_, presets_.size()));
  }
  if (plain_cells_ > kMaxTrials || preset_begins_.back() > kMaxTrials ||
      total().value_or(0) > kMaxTrials) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("config: num_samples {} and its grids make more than {} trials: use "
                            "choice instead of grid_search for some keys",
                            num_samples_, kMaxTrials));
  }
}

void BasicVariantSearcher::set_num_samples(std::int64_t num_samples) {
  num_samples_ = num_samples;
}

const Config* BasicVariantSearcher::preset_of(std::uint64_t sample) const {
  return sample < presets_.size() ? &presets_[sample] : nullptr;
}

// A preset's grid keys leave that sample's grid.
std::uint64_t BasicVariantSearcher::cells_of(const Config* preset) const {
  std::uint64_t cells = 1;
  for (const Grid& grid : grids_) {
    if (preset != nullptr && preset->contains(grid.path)) continue;
    cells = bounded_product(cells, grid.values.size());
  }
  return cells;
}

std::optional<std::uint64_t> BasicVariantSearcher::total() const {
  if (num_samples_ < 0) return std::nullopt;
  const auto samples = static_cast<std::uint64_t>(num_samples_);
  const std::uint64_t preset = std::min<std::uint64_t>(samples, presets_.size());
  return preset_begins_[preset] + bounded_product(samples - preset, plain_cells_);
}

std::optional<BasicVariantSearcher::Cell> BasicVariantSearcher::cell_of(std::uint64_t trial) const {
  if (const auto all = total(); all && trial >= *all) return std::nullopt;
  const std::uint64_t plain = preset_begins_.back();
  if (trial < plain) {
    const auto after = std::upper_bound(preset_begins_.begin(), preset_begins_.end(), trial);
    const auto sample = static_cast<std::uint64_t>(after - preset_begins_.begin() - 1);
    return Cell{sample, trial - preset_begins_[sample]};
  }
  return Cell{presets_.size() + (trial - plain) / plain_cells_, (trial - plain) % plain_cells_};
}

std::optional<Config> BasicVariantSearcher::suggest(TrialNumber trial) {
  const std::optional<Cell> cell = cell_of(trial.value);
  if (!cell) return std::nullopt;
  const Config* preset = preset_of(cell->sample);
  Config config = frame_;
  const auto set_preset = [&](const std::string& path) {
    const Value* value = preset != nullptr ? preset->find(path) : nullptr;
    if (value != nullptr) config.set(path, *value);
    return value != nullptr;
  };
  if (preset != nullptr) std::for_each(constants_.begin(), constants_.end(), set_preset);
  std::uint64_t rest = cell->index;
  for (const Grid& grid : grids_) {  // the first varies fastest
    if (set_preset(grid.path)) continue;
    config.set(grid.path, grid.values[rest % grid.values.size()]);
    rest /= grid.values.size();
  }
  const std::uint64_t number = options_.constant_grid_search ? cell->sample : trial.value;
  for (const Drawn& drawn : drawn_) {
    if (set_preset(drawn.path)) continue;
    RandomStream random(seed_, drawn.purpose, number);
    config.set(drawn.path, drawn.domain.draw(random));
  }
  if (preset == nullptr) {
    compute_functions(config, functions_);
    return config;
  }
  std::vector<SampleFunction> functions;
  for (const SampleFunction& one : functions_) {
    if (!set_preset(one.path)) functions.push_back(one);
  }
  compute_functions(config, functions);
  return config;
}

std::string BasicVariantSearcher::save() const {
  return encoded(State{kStateName, num_samples_});
}

void BasicVariantSearcher::restore(std::string_view state) {
  const auto saved = decoded<State>(state);
  if (saved.name != kStateName) {
    throw Error(ErrorCode::kProtocol,
                fmt::format("restoring the searcher: the state is of '{}', not of '{}': resume "
                            "with the searcher that the experiment began with",
                            saved.name, kStateName));
  }
  num_samples_ = saved.num_samples;
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
