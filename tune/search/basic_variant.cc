#include "tune/search/basic_variant.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/error.h"
#include "core/random.h"
#include "tune/search/presets.h"
#include "tune/search/whole_numbers.h"

namespace tune {

namespace {

// Trial numbers have 32 bits.
constexpr std::uint64_t kMaxTrials = std::numeric_limits<std::uint32_t>::max();
constexpr const char* kVariantState = "basic_variant";
constexpr std::uint64_t kMostSievedCells = 100'000;
constexpr std::uint64_t kCheckedTrials = 100;
constexpr std::size_t kNotTaken = static_cast<std::size_t>(-1);

// A snapshot keeps this: all else follows from the setup.
struct SavedVariant {
  std::string name;
  std::int64_t num_samples = 1;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.name, s.num_samples);
  }
};

void collect_constants(const SearchSpace& space, const std::string& path,
                       std::vector<std::string>& paths) {
  if (space.is_constant()) paths.push_back(path);
  if (!space.is_map()) return;
  for (const SpaceMember& member : space.members()) {
    collect_constants(member.value, path.empty() ? member.key : path + "/" + member.key, paths);
  }
}

// A stream for each key: a new key changes no other's draws. And one for each try.
std::string purpose_of(const std::string& purpose, int attempt) {
  return attempt == 0 ? purpose : fmt::format("redraw {}/{}", attempt, purpose);
}

bool set_preset(Config& config, const Config* preset, const std::string& path) {
  const Value* value = preset != nullptr ? preset->find(path) : nullptr;
  if (value != nullptr) config.set(path, *value);
  return value != nullptr;
}

// The option of a choice, one of those that fit where the preset says something about it.
std::size_t pick_option(const Domain::Choice& choice, const Value* preset, RandomStream& random) {
  const auto count = static_cast<std::int64_t>(choice.values.size());
  const auto option = static_cast<std::size_t>(random.integer(0, count));
  if (preset == nullptr) return option;
  const std::vector<std::size_t> fitting = fitting_options(choice, *preset);
  if (std::find(fitting.begin(), fitting.end(), option) != fitting.end()) return option;
  return fitting[static_cast<std::size_t>(random.integer(0, std::ssize(fitting)))];
}

}  // namespace

void BasicVariantSearcher::configure(const SearcherSetup& setup) {
  if (!setup.space.is_map()) {
    throw Error(ErrorCode::kBadInput, "config must be a map of parameters, as in {lr: 0.1}");
  }
  num_samples_ = setup.num_samples;
  seed_ = setup.objective.seed;
  where_ = Where(setup.where, setup.space);
  presets_ = checked_presets(setup.space, setup.points_to_evaluate, num_samples_);
  sort_out(setup.space);
  plain_cells_ = cells_of(nullptr);
  preset_cells_.clear();
  preset_begins_ = {0};
  for (const Config& preset : presets_) {
    preset_cells_.push_back(cells_of(&preset));
    preset_begins_.push_back(preset_begins_.back() + preset_cells_.back().count);
  }
  check_counts();
  check_draws();
}

void BasicVariantSearcher::sort_out(const SearchSpace& space) {
  frame_ = Config(space.frame());
  constants_.clear();
  collect_constants(space, {}, constants_);
  grids_.clear();
  drawn_.clear();
  for (const auto& [path, domain, condition] : space.placed_domains()) {
    if (const auto* grid = std::get_if<Domain::Grid>(&domain->kind())) {
      grids_.push_back({path, grid->values});
    }
    drawn_.push_back({path, "config/" + path, *domain, condition});
  }
  std::sort(grids_.begin(), grids_.end(),
            [](const Grid& a, const Grid& b) { return a.path < b.path; });
}

void BasicVariantSearcher::check_counts() const {
  if (plain_cells_.count > kMaxTrials || preset_begins_.back() > kMaxTrials ||
      total().value_or(0) > kMaxTrials) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("config: num_samples {} and its grids make more than {} trials: use "
                            "choice instead of grid_search for some keys",
                            num_samples_, kMaxTrials));
  }
}

// A sweep must not end midway because nothing can be drawn for a cell of its grid. Functions are
// the user's: they are not called here.
void BasicVariantSearcher::check_draws() const {
  if (where_.empty()) return;
  const bool all_alike = presets_.empty() && !where_names_grids();
  const std::uint64_t cells = preset_begins_.back() + plain_cells_.count;
  const std::uint64_t trials = std::min(cells, total().value_or(cells));
  const std::uint64_t checked = all_alike ? 1 : std::min(trials, kCheckedTrials);
  for (std::uint64_t i = 0; i < checked; ++i) {
    // From the first to the last: at the ends of a grid rules are hardest to keep.
    const std::uint64_t trial = checked > 1 ? i * (trials - 1) / (checked - 1) : 0;
    const Place place = *place_of(trial);
    try {
      check_that_some_hold([&](int attempt) {
        std::vector<SampleFunction> functions;
        return where_.broken_by(draw_config(place, trial, attempt, functions));
      });
    } catch (const Error& error) {
      if (all_alike) throw;
      Config fixed = frame_;
      set_cell(fixed, place.cell, preset_of(place.sample));
      throw Error(ErrorCode::kBadInput,
                  fmt::format("{} (found with {})", error.what(), fixed.dump()));
    }
  }
}

void BasicVariantSearcher::set_num_samples(std::int64_t num_samples) {
  num_samples_ = num_samples;
}

// ---- Samples and cells --------------------------------------------------------------------------

const Config* BasicVariantSearcher::preset_of(std::uint64_t sample) const {
  return sample < presets_.size() ? &presets_[sample] : nullptr;
}

// A preset's grid keys leave that sample's grid.
std::uint64_t BasicVariantSearcher::all_cells_of(const Config* preset) const {
  std::uint64_t cells = 1;
  for (const Grid& grid : grids_) {
    if (preset != nullptr && preset->contains(grid.path)) continue;
    cells = bounded_product(cells, grid.values.size(), kMaxTrials + 1);
  }
  return cells;
}

void BasicVariantSearcher::set_cell(Config& config, std::uint64_t cell,
                                    const Config* preset) const {
  for (const std::string& path : constants_) set_preset(config, preset, path);
  for (const Grid& grid : grids_) {  // the first varies fastest
    if (set_preset(config, preset, grid.path)) continue;
    config.set(grid.path, grid.values[cell % grid.values.size()]);
    cell /= grid.values.size();
  }
}

bool BasicVariantSearcher::where_names_grids() const {
  const auto is_on_grid = [&](const std::string& path) {
    return std::any_of(grids_.begin(), grids_.end(),
                       [&](const Grid& grid) { return grid.path == path; });
  };
  return std::any_of(where_.rules().begin(), where_.rules().end(), [&](const WhereRule& rule) {
    return std::any_of(rule.paths().begin(), rule.paths().end(), is_on_grid);
  });
}

// Drawn values are null here, and a condition on a null holds: one that is broken is always broken.
BasicVariantSearcher::Cells BasicVariantSearcher::cells_of(const Config* preset) const {
  Cells cells{.count = all_cells_of(preset)};
  if (where_.empty()) return cells;
  const std::uint64_t looked_at = where_names_grids() ? cells.count : 1;
  if (looked_at > kMostSievedCells) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("where: a grid of more than {} cells takes no rule about its keys: use "
                            "choice instead of grid_search for some keys",
                            kMostSievedCells));
  }
  Config config = frame_;
  for (const Drawn& one : drawn_) {
    if (one.domain.conditional() == nullptr) set_preset(config, preset, one.path);
  }
  const WhereRule* broken = nullptr;
  for (std::uint64_t cell = 0; cell < looked_at; ++cell) {
    set_cell(config, cell, preset);
    if (const WhereRule* found = where_.broken_by(config)) {
      broken = found;
    } else {
      cells.kept.push_back(static_cast<std::uint32_t>(cell));
    }
  }
  if (cells.kept.empty()) {
    const std::string place = preset == nullptr
                                  ? "where"
                                  : fmt::format("points_to_evaluate/{}", preset - presets_.data());
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: {} breaks '{}' whatever is drawn", place,
                            preset == nullptr ? config.dump() : preset->dump(), broken->text()));
  }
  if (cells.kept.size() == looked_at) {
    cells.kept.clear();
  } else {
    cells.count = cells.kept.size();
  }
  return cells;
}

std::optional<std::uint64_t> BasicVariantSearcher::total() const {
  if (num_samples_ < 0) return std::nullopt;
  const auto samples = static_cast<std::uint64_t>(num_samples_);
  const std::uint64_t preset = std::min<std::uint64_t>(samples, presets_.size());
  return preset_begins_[preset] +
         bounded_product(samples - preset, plain_cells_.count, kMaxTrials + 1);
}

std::optional<BasicVariantSearcher::Place> BasicVariantSearcher::place_of(
    std::uint64_t trial) const {
  if (const auto all = total(); all && trial >= *all) return std::nullopt;
  const std::uint64_t plain = preset_begins_.back();
  if (trial < plain) {
    const auto after = std::upper_bound(preset_begins_.begin(), preset_begins_.end(), trial);
    const auto sample = static_cast<std::uint64_t>(after - preset_begins_.begin() - 1);
    return Place{sample, preset_cells_[sample].index(trial - preset_begins_[sample])};
  }
  return Place{presets_.size() + (trial - plain) / plain_cells_.count,
               plain_cells_.index((trial - plain) % plain_cells_.count)};
}

// ---- Configurations -----------------------------------------------------------------------------

std::optional<Config> BasicVariantSearcher::suggest(TrialNumber trial) {
  const std::optional<Place> place = place_of(trial.value);
  if (!place) return std::nullopt;
  const WhereRule* broken = nullptr;
  for (int attempt = 0; attempt < kMostWhereDraws; ++attempt) {
    std::vector<SampleFunction> functions;
    Config config = draw_config(*place, trial.value, attempt, functions);
    broken = where_.broken_by(config);  // what functions will compute is null, which holds
    if (broken != nullptr) continue;
    compute_functions(config, functions);
    broken = functions.empty() ? nullptr : where_.broken_by(config);
    if (broken == nullptr) return config;
  }
  throw_none_holds(*broken);
}

std::optional<std::size_t> BasicVariantSearcher::given_to(TrialNumber trial) const {
  const std::optional<Place> place = place_of(trial.value);
  if (!place || preset_of(place->sample) == nullptr) return std::nullopt;
  return static_cast<std::size_t>(place->sample);
}

Config BasicVariantSearcher::draw_config(const Place& place, std::uint64_t trial, int attempt,
                                         std::vector<SampleFunction>& functions) const {
  const Config* preset = preset_of(place.sample);
  Config config = frame_;
  set_cell(config, place.cell, preset);
  const std::uint64_t number = options_.constant_grid_search ? place.sample : trial;
  std::vector<std::size_t> taken(drawn_.size(), kNotTaken);  // of choices with conditions
  for (std::size_t i = 0; i < drawn_.size(); ++i) {
    const Drawn& one = drawn_[i];
    if (one.condition && taken[one.condition->choice] != one.condition->option) continue;
    if (one.domain.is_grid()) continue;
    RandomStream random(seed_, purpose_of(one.purpose, attempt), number);
    if (const Domain::Choice* choice = one.domain.conditional()) {
      const Value* given = preset != nullptr ? preset->find(one.path) : nullptr;
      taken[i] = pick_option(*choice, given, random);
      config.set(one.path, choice->values[taken[i]]);
    } else if (set_preset(config, preset, one.path)) {
      continue;
    } else if (one.domain.is_function()) {
      functions.push_back({one.path, std::get<Domain::SampleFrom>(one.domain.kind()).function});
    } else {
      config.set(one.path, one.domain.draw(random));
    }
  }
  return config;
}

std::string BasicVariantSearcher::save() const {
  return encoded(SavedVariant{kVariantState, num_samples_});
}

void BasicVariantSearcher::restore(std::string_view state) {
  const auto saved = decoded<SavedVariant>(state);
  if (saved.name != kVariantState) {
    throw Error(ErrorCode::kProtocol,
                fmt::format("restoring the searcher: the state is of '{}', not of '{}': resume "
                            "with the searcher that the experiment began with",
                            saved.name, kVariantState));
  }
  num_samples_ = saved.num_samples;
}

// ---- As a value ---------------------------------------------------------------------------------

namespace {

bool has_grid(const SearchSpace& space) {
  const auto domains = space.placed_domains();
  return std::any_of(domains.begin(), domains.end(),
                     [](const PlacedDomain& placed) { return placed.domain->is_grid(); });
}

struct RandomSearch : BasicVariantSearcher {
  RandomSearch() : BasicVariantSearcher({}) {}
  void configure(const SearcherSetup& setup) override {
    if (has_grid(setup.space)) {
      throw Error(ErrorCode::kBadInput,
                  "searcher random: config has a grid_search, of which every value is tried: take "
                  "the searcher grid, or write choice instead of grid_search");
    }
    BasicVariantSearcher::configure(setup);
  }
};

struct GridSearch : BasicVariantSearcher {
  using BasicVariantSearcher::BasicVariantSearcher;
  void configure(const SearcherSetup& setup) override {
    if (!has_grid(setup.space)) {
      throw Error(ErrorCode::kBadInput,
                  "searcher grid: config has no grid_search: write one, as in lr: {grid_search: "
                  "[0.01, 0.1]}, or take the searcher random");
    }
    BasicVariantSearcher::configure(setup);
  }
};

Config parameters_of(const BasicVariantOptions& options) {
  Config parameters;
  if (options.constant_grid_search) parameters.set("constant_grid_search", true);
  return parameters;
}

}  // namespace

SearcherSpec basic_variant(BasicVariantOptions options) {
  return SearcherSpec("basic_variant", parameters_of(options),
                      [options] { return std::make_unique<BasicVariantSearcher>(options); });
}

SearcherSpec random_search() {
  return SearcherSpec("random", {}, [] { return std::make_unique<RandomSearch>(); });
}

SearcherSpec every_cell(BasicVariantOptions options) {
  return SearcherSpec("grid", parameters_of(options),
                      [options] { return std::make_unique<GridSearch>(options); });
}

}  // namespace tune
