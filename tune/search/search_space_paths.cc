// Search spaces by key path: what stands where, also within the options of choices.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/error.h"
#include "core/key_path.h"
#include "core/strings.h"
#include "tune/search/search_space.h"

namespace tune {

namespace {

void place_domains(const SearchSpace& space, const std::string& path,
                   std::optional<Condition> condition, std::vector<PlacedDomain>& all) {
  if (space.is_map()) {
    for (const SpaceMember& member : space.members()) {
      place_domains(member.value, join_path(path, member.key), condition, all);
    }
  }
  if (!space.is_domain()) return;
  const std::size_t index = all.size();
  all.push_back({path, &space.domain(), condition});
  const Domain::Choice* choice = space.domain().conditional();
  if (choice == nullptr) return;
  for (std::size_t i = 0; i < choice->spaces.size(); ++i) {
    if (choice->spaces[i]) place_domains(*choice->spaces[i], path, Condition{index, i}, all);
  }
}

// The paths of leaves: of constants only those in options, or all.
struct LeafPaths {
  bool all_constants;
  std::vector<std::string> found = {};
  std::set<std::string> seen = {};

  void add(const std::string& path) {
    if (seen.insert(path).second) found.push_back(path);
  }
  void walk(const SearchSpace& space, const std::string& path, bool is_searched) {
    if (space.is_map()) {
      for (const SpaceMember& member : space.members()) {
        walk(member.value, join_path(path, member.key), is_searched);
      }
      if (space.members().empty() && is_searched) add(path);
    } else if (space.is_constant()) {
      if (is_searched || all_constants) add(path);
    } else if (const Domain::Choice* choice = space.domain().conditional()) {
      const auto is_map = [](const Value& value) { return value.is_map() && !value.map().empty(); };
      if (!std::all_of(choice->values.begin(), choice->values.end(), is_map)) add(path);
      for (std::size_t i = 0; i < choice->spaces.size(); ++i) {
        walk(choice->spaces[i] ? *choice->spaces[i] : SearchSpace(choice->values[i]), path, true);
      }
    } else {
      add(path);
    }
  }
};

void collect_nodes(const SearchSpace& space, std::string_view path,
                   std::vector<SearchSpace>& found) {
  if (path.empty()) {
    found.push_back(space);
    return;
  }
  const std::size_t slash = path.find('/');
  const std::string_view rest = slash == path.npos ? "" : path.substr(slash + 1);
  if (space.is_map()) {
    const SearchSpace* below = space.find(path.substr(0, slash));
    if (below != nullptr) collect_nodes(*below, rest, found);
  }
  const auto* choice =
      space.is_domain() ? std::get_if<Domain::Choice>(&space.domain().kind()) : nullptr;
  for (std::size_t i = 0; choice != nullptr && i < choice->values.size(); ++i) {
    const bool is_space = !choice->spaces.empty() && choice->spaces[i] != nullptr;
    if (is_space) {
      collect_nodes(*choice->spaces[i], path, found);
    } else if (const Value* value = choice->values[i].find(path)) {
      found.emplace_back(*value);
    }
  }
}

std::vector<SearchSpace> options_of(const Domain::Choice& choice) {
  std::vector<SearchSpace> options;
  for (std::size_t i = 0; i < choice.values.size(); ++i) {
    const bool is_space = !choice.spaces.empty() && choice.spaces[i] != nullptr;
    options.push_back(is_space ? *choice.spaces[i] : SearchSpace(choice.values[i]));
  }
  return options;
}

// The choice with the node at a path of each option that has the path.
Domain with_options_set(const Domain::Choice& choice, std::string_view path,
                        const SearchSpace& node, const std::string& at) {
  std::vector<SearchSpace> options = options_of(choice);
  std::vector<std::string> known;
  bool is_set = false;
  for (SearchSpace& option : options) {
    for (std::string& one : option.value_paths()) known.push_back(std::move(one));
    if (option.nodes_at(path).empty()) continue;
    option.set(path, node);
    is_set = true;
  }
  if (is_set) return tune::choice(std::move(options));
  const std::string near = nearest(path, known);
  throw Error(ErrorCode::kBadInput,
              fmt::format("config: '{}/{}' cannot be set: no option of '{}' has it{}", at, path, at,
                          near.empty() ? std::string()
                                       : fmt::format(" (did you mean '{}/{}'?)", at, near)));
}

}  // namespace

void SearchSpace::set(std::string_view path, SearchSpace node) {
  SearchSpace* here = this;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::string above(path.substr(0, begin == 0 ? 0 : begin - 1));
    if (here->is_domain() && std::holds_alternative<Domain::Choice>(here->domain().kind())) {
      *here = with_options_set(std::get<Domain::Choice>(here->domain().kind()), path.substr(begin),
                               node, above);
      return;
    }
    if (!here->is_map()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("config: '{}' cannot be set: '{}' is not a map", path, above));
    }
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view key = path.substr(begin, end - begin);
    auto& members = std::get<std::vector<SpaceMember>>(here->node_);
    auto found = std::find_if(members.begin(), members.end(),
                              [&](const SpaceMember& member) { return member.key == key; });
    if (found == members.end()) {
      found = members.emplace(found, std::string(key), SearchSpace());
    }
    here = &found->value;
    begin = end + 1;
  }
  *here = std::move(node);
}

std::vector<std::pair<std::string, const Domain*>> SearchSpace::domains() const {
  std::vector<std::pair<std::string, const Domain*>> all;
  for (PlacedDomain& placed : placed_domains()) {
    if (!placed.condition) all.emplace_back(std::move(placed.path), placed.domain);
  }
  return all;
}

std::vector<PlacedDomain> SearchSpace::placed_domains() const {
  std::vector<PlacedDomain> all;
  place_domains(*this, {}, {}, all);
  return all;
}

std::vector<std::string> SearchSpace::searched_paths() const {
  LeafPaths paths{.all_constants = false};
  paths.walk(*this, {}, false);
  return std::move(paths.found);
}

std::vector<std::string> SearchSpace::value_paths() const {
  LeafPaths paths{.all_constants = true};
  paths.walk(*this, {}, false);
  return std::move(paths.found);
}

std::vector<SearchSpace> SearchSpace::nodes_at(std::string_view path) const {
  std::vector<SearchSpace> found;
  collect_nodes(*this, path, found);
  return found;
}

Value SearchSpace::frame() const {
  if (is_domain()) return {};
  if (is_constant()) return constant();
  Value::Map map;
  for (const SpaceMember& member : members()) map.emplace_back(member.key, member.value.frame());
  return Value::make_map(std::move(map));
}

}  // namespace tune
