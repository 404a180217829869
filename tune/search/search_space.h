// The way a configuration is drawn: a nested map of constants and domains. Semantics, bounds and
// errors of each domain: tune/README.md, "Search spaces". Pure: drawing needs only a RandomStream.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/random.h"
#include "core/value.h"

namespace tune {

class SearchSpace;

// One way to draw a value. Construction checks the arguments and throws Error (kBadInput).
class Domain {
 public:
  struct Uniform {
    double low, high, q;  // q 0: not quantised
    bool log;
  };
  struct Integer {
    std::int64_t low, high, q;  // [low, high), or with q > 0 the multiples of q in [low, high]
    bool log;
  };
  struct Normal {
    double mean, sd, q;
  };
  // An option may be a map that holds domains. These are drawn when the option is taken; their keys
  // are in no other configuration.
  struct Choice {
    std::vector<Value> values;  // of an option that holds domains: null where one of them stands
    // Empty when no option holds a domain. Else one for each value; null: a plain option.
    std::vector<std::shared_ptr<const SearchSpace>> spaces = {};
  };
  struct Grid {
    std::vector<Value> values;
  };
  struct SampleFrom {
    std::function<Value(const Config&)> function;
  };
  using Kind = std::variant<Uniform, Integer, Normal, Choice, Grid, SampleFrom>;

  explicit Domain(Kind kind) : kind_(std::move(kind)) {}
  const Kind& kind() const { return kind_; }
  bool is_grid() const { return std::holds_alternative<Grid>(kind_); }
  bool is_function() const { return std::holds_alternative<SampleFrom>(kind_); }
  // The choice whose options hold domains; null when it is anything else.
  const Choice* conditional() const;
  // Any domain but Grid and SampleFrom (TUNE_CHECK). Of an option that holds domains: its map, with
  // null where one of them stands.
  Value draw(RandomStream& random) const;
  // The one-key map YAML writes: {loguniform: [0.001, 1]}. SampleFrom: {sample_from: null}.
  Value describe() const;

 private:
  Kind kind_;
};

Domain uniform(double low, double high);
Domain quniform(double low, double high, double q);
Domain loguniform(double low, double high);
Domain qloguniform(double low, double high, double q);
Domain randint(std::int64_t low, std::int64_t high);
Domain qrandint(std::int64_t low, std::int64_t high, std::int64_t q = 1);
Domain lograndint(std::int64_t low, std::int64_t high);
Domain randn(double mean = 0, double sd = 1);
Domain qrandn(double mean, double sd, double q);
// Values of any type, or maps that hold domains:
//   choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}}, {{"kind", "adam"}}, "none"})
// Error when an option is a domain by itself, or holds a grid_search.
Domain choice(std::initializer_list<SearchSpace> options);
Domain choice(std::vector<SearchSpace> options);
Domain choice(std::vector<Value> values);
Domain grid_search(std::initializer_list<Value> values);
Domain grid_search(std::vector<Value> values);
// `function` gets the configuration drawn so far and may read other values, drawn or computed; a
// cycle of such functions is an error that names it.
Domain sample_from(std::function<Value(const Config&)> function);

struct SpaceMember;

// The choice that a domain within an option depends on.
struct Condition {
  std::size_t choice = 0;  // the index of a choice before it
  std::size_t option = 0;  // which of its options has it
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct PlacedDomain {
  std::string path;  // of the value it draws: "optimiser/momentum"
  const Domain* domain = nullptr;
  std::optional<Condition> condition = {};  // nothing: it is always drawn
};

// A constant, a domain, or a nested space. Constants are Values.
class SearchSpace {
 public:
  using Node = std::variant<Value, Domain, std::vector<SpaceMember>>;

  SearchSpace();  // an empty map
  SearchSpace(std::initializer_list<SpaceMember> members);
  SearchSpace(Domain domain);  // NOLINT
  template <ValueLike T>
  SearchSpace(T&& constant);  // NOLINT
  SearchSpace(Value constant);  // NOLINT; maps become nested spaces

  bool is_domain() const { return std::holds_alternative<Domain>(node_); }
  bool is_constant() const { return std::holds_alternative<Value>(node_); }
  bool is_map() const { return std::holds_alternative<std::vector<SpaceMember>>(node_); }
  const Domain& domain() const { return std::get<Domain>(node_); }
  const Value& constant() const { return std::get<Value>(node_); }
  const std::vector<SpaceMember>& members() const;
  const SearchSpace* find(std::string_view path) const;
  // Makes the maps on the way; Error as Value::set. Of a choice on the way, all options change that
  // have the path.
  void set(std::string_view path, SearchSpace node);

  // Every domain with its path, depth first in the order written; not those within options.
  std::vector<std::pair<std::string, const Domain*>> domains() const;
  // Those within options too, each after its choice. Two of different options may have one path.
  std::vector<PlacedDomain> placed_domains() const;
  // The key paths that tell configurations apart, each once: those of domains, and of a choice
  // whose options hold domains all that is in its options.
  std::vector<std::string> searched_paths() const;
  // The key paths of all values that a configuration may have.
  std::vector<std::string> value_paths() const;
  // The domains of a key path: more than one when options of a choice differ.
  std::vector<SearchSpace> nodes_at(std::string_view path) const;
  // The configuration but for what is drawn, where it has null.
  Value frame() const;
  // As YAML would write it: domains as one-key maps. What experiment.json stores.
  Value describe() const;

 private:
  Node node_;
};

struct SpaceMember {
  SpaceMember(std::string key, SearchSpace value);  // key rules of Member
  std::string key;
  SearchSpace value;
};

// Here, where SpaceMember is known whole.
inline SearchSpace::SearchSpace() : node_(std::vector<SpaceMember>{}) {}
inline SearchSpace::SearchSpace(Domain domain) : node_(std::move(domain)) {}
template <ValueLike T>
SearchSpace::SearchSpace(T&& constant) : node_(Value(std::forward<T>(constant))) {}

// The space a described or YAML value means: one-key maps {domain: arguments} become domains,
// {const: x} the constant x. When a map among the options of a choice holds a domain, all maps
// among them are read as spaces; else options are the constants that they are. A list that holds a
// domain and a map of two domains are complained of, as a slip. Collects every complaint as (key
// path, message) instead of throwing; the path of a key within an option names the option:
// "optimiser/choice/0/momentum".
struct SpaceComplaint {
  std::string path;
  std::string message;
};
struct SpaceReading {
  bool constant_options = false;  // options of a choice hold no domains, whatever they look like
  bool is_stored = false;  // slips are the constants as which they were read when it was stored
  std::function<Value(const Config&)> function = {};  // for {sample_from: null}; none: a complaint
};
SearchSpace search_space_from_value(const Value& value, std::vector<SpaceComplaint>& complaints,
                                    const SpaceReading& reading = {});
// The same for one value within a space, at `path`. There a map with one list is a domain or a
// mistake; at the top it is a configuration of one parameter.
SearchSpace search_node_from_value(const Value& value, const std::string& path,
                                   std::vector<SpaceComplaint>& complaints);

}  // namespace tune
