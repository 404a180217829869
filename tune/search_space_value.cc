// Search spaces from values: what YAML and experiment.json hold.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"
#include "tune/search_space.h"

namespace tune {

namespace {

constexpr const char* kConst = "const";

const std::vector<std::string> kDomains = {"uniform", "quniform", "loguniform", "qloguniform",
                                           "randint", "qrandint", "randn",      "lograndint",
                                           "qrandn",  "choice",   "grid_search"};

double number_at(const Value::List& items, std::size_t index) {
  return items.at(index).as<double>();
}
std::int64_t integer_at(const Value::List& items, std::size_t index) {
  return items.at(index).as<std::int64_t>();
}

[[noreturn]] void wrong_count(const std::string& name, const char* wanted, std::size_t found) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} takes {}, found {} values", name, wanted, found));
}

void expect(const std::string& name, const Value::List& items, std::size_t low, std::size_t high,
            const char* wanted) {
  if (items.size() < low || items.size() > high) wrong_count(name, wanted, items.size());
}

Domain make_domain(const std::string& name, const Value::List& items) {
  if (name == "choice") return choice(items);
  if (name == "grid_search") return grid_search(items);
  if (name == "randint" || name == "lograndint") {
    expect(name, items, 2, 2, "[low, high] with high excluded");
    return name == "randint" ? randint(integer_at(items, 0), integer_at(items, 1))
                             : lograndint(integer_at(items, 0), integer_at(items, 1));
  }
  if (name == "qrandint") {
    expect(name, items, 2, 3, "[low, high, q]");
    return qrandint(integer_at(items, 0), integer_at(items, 1),
                    items.size() == 3 ? integer_at(items, 2) : 1);
  }
  if (name == "randn") {
    expect(name, items, 0, 2, "[mean, sd]");
    return randn(items.size() > 0 ? number_at(items, 0) : 0,
                 items.size() > 1 ? number_at(items, 1) : 1);
  }
  if (name == "qrandn") {
    expect(name, items, 3, 3, "[mean, sd, q]");
    return qrandn(number_at(items, 0), number_at(items, 1), number_at(items, 2));
  }
  const bool quantised = name.starts_with('q');
  expect(name, items, quantised ? 3 : 2, quantised ? 3 : 2,
         quantised ? "[low, high, q]" : "[low, high]");
  const double low = number_at(items, 0);
  const double high = number_at(items, 1);
  if (name == "uniform") return uniform(low, high);
  if (name == "loguniform") return loguniform(low, high);
  if (name == "quniform") return quniform(low, high, number_at(items, 2));
  return qloguniform(low, high, number_at(items, 2));
}

// The line to write for a spelling that other tools use; empty when it is none.
std::string other_spelling(const Value& map, const std::string& key) {
  const Value* values = map.find("values");
  if (values != nullptr && values->is_list() &&
      (map.map().size() == 1 || map.contains("type") || map.contains("distribution"))) {
    return fmt::format("{}: {{choice: {}}}", key, to_json(*values));
  }
  const bool named = map.contains("distribution");
  const Value* low = map.find("min");
  const Value* high = map.find("max");
  const bool only_bounds =
      map.map().size() == 2 || named || map.contains("type") || map.contains("log");
  if (low != nullptr && high != nullptr && low->is_number() && high->is_number() && only_bounds) {
    std::string domain = "uniform";
    const Value* kind = map.find("distribution");
    if (kind != nullptr && kind->is_string() && kind->string().find("log") != std::string::npos)
      domain = "loguniform";
    if (map.contains("log")) domain = "loguniform";
    if (low->type() == Value::Type::kInt && high->type() == Value::Type::kInt && !named) {
      domain = "qrandint";
    }
    return fmt::format("{}: {{{}: [{}, {}]}}", key, domain, to_json(*low), to_json(*high));
  }
  if (named) return fmt::format("{}: {{uniform: [low, high]}}", key);
  return {};
}

class Reader {
 public:
  explicit Reader(std::vector<SpaceComplaint>& complaints) : complaints_(complaints) {}

  SearchSpace read(const Value& value, const std::string& path) {
    if (!value.is_map()) return SearchSpace(value);
    if (value.map().size() == 1) {
      const auto& [key, inner] = value.map().front();
      if (key == kConst) return constant(inner);
      const bool known = std::find(kDomains.begin(), kDomains.end(), key) != kDomains.end();
      if (known && inner.is_list()) return domain(key, inner.list(), path);
      if (known)
        return complain(path, fmt::format("{} takes a list, found {}", key, to_json(inner)));
      if (key == "sample_from") {
        return inner.is_null() ? SearchSpace(sample_from([](const Config&) -> Value {
          throw Error(ErrorCode::kBadInput, "sample_from exists in C++ only");
        }))
                               : complain(path, "sample_from exists in C++ only");
      }
      if (inner.is_list() && !path.empty() && key != "values")
        return complain_unknown(path, key, inner);
    }
    const std::string name =
        path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
    if (const std::string line = path.empty() ? "" : other_spelling(value, name); !line.empty()) {
      return complain(path, fmt::format("this spelling belongs to another tool: write `{}`", line));
    }
    SearchSpace space;
    for (const auto& [key, inner] : value.map()) {
      space.set(key, read(inner, path.empty() ? key : path + "/" + key));
    }
    return space;
  }

 private:
  static SearchSpace constant(const Value& value) { return SearchSpace(value); }

  SearchSpace domain(const std::string& name, const Value::List& items, const std::string& path) {
    try {
      return SearchSpace(make_domain(name, items));
    } catch (const Error& error) {
      return complain(path, error.what());
    }
  }
  SearchSpace complain_unknown(const std::string& path, const std::string& key, const Value& list) {
    const std::string near = nearest(key, kDomains);
    return complain(path,
                    fmt::format("there is no domain '{}'{}; a constant of this shape is written "
                                "{{const: {{{}: {}}}}}",
                                key,
                                near.empty() ? fmt::format(" (there are: {})", join(kDomains, ", "))
                                             : fmt::format(" (did you mean '{}'?)", near),
                                key, to_json(list)));
  }
  SearchSpace complain(const std::string& path, std::string message) {
    complaints_.push_back({path, std::move(message)});
    return SearchSpace(Value());
  }

  std::vector<SpaceComplaint>& complaints_;
};

}  // namespace

SearchSpace search_space_from_value(const Value& value, std::vector<SpaceComplaint>& complaints) {
  return Reader(complaints).read(value, {});
}

}  // namespace tune
