#include "tune/sample_functions.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"

namespace tune {

namespace {

// The space's values in its order; what is not chosen yet is left out.
Value build(const SearchSpace& space, const std::string& path,
            const std::map<std::string, Value>& chosen) {
  if (const auto found = chosen.find(path); found != chosen.end()) return found->second;
  if (space.is_constant()) return space.constant();
  Value map = Value::make_map();
  for (const SpaceMember& member : space.members()) {
    const std::string below = path.empty() ? member.key : path + "/" + member.key;
    if (member.value.is_domain() && !chosen.contains(below)) {
      // Left out, unless a preset names something below it.
      const auto inner = chosen.lower_bound(below + "/");
      if (inner == chosen.end() || !inner->first.starts_with(below + "/")) continue;
      map.set(member.key, Value::make_map());
      continue;
    }
    map.map().emplace_back(member.key, build(member.value, below, chosen));
  }
  return map;
}

Config build_config(const SearchSpace& space, const std::map<std::string, Value>& chosen) {
  Value value = build(space, {}, chosen);
  // Preset values below a domain or constant.
  for (const auto& [path, inner] : chosen) {
    if (!path.empty() && space.find(path) == nullptr) value.set(path, inner);
  }
  return Config(std::move(value));
}

struct Pending {
  std::string path;
  const Domain* domain;
  std::string complaint;
};

// Follows "there is no 'b'" from function to function until one comes again.
std::string find_cycle(const std::vector<Pending>& pending) {
  std::vector<std::string> way = {pending.front().path};
  while (true) {
    const auto here = std::find_if(pending.begin(), pending.end(),
                                   [&](const Pending& one) { return one.path == way.back(); });
    const auto next = std::find_if(pending.begin(), pending.end(), [&](const Pending& one) {
      return here->complaint.find(fmt::format("'{}'", one.path)) != std::string::npos;
    });
    if (next == pending.end()) return {};
    const auto seen = std::find(way.begin(), way.end(), next->path);
    way.push_back(next->path);
    if (seen != way.end() - 1) {
      const auto again = std::find(way.begin(), way.end(), way.back());
      return join(std::vector<std::string>(again, way.end()), " -> ");
    }
  }
}

[[noreturn]] void fail(const std::vector<Pending>& pending) {
  const std::string cycle = find_cycle(pending);
  throw Error(ErrorCode::kBadInput,
              cycle.empty() ? fmt::format("sample_from of '{}': {}", pending.front().path,
                                          pending.front().complaint)
                            : fmt::format("sample_from: the values {} need each other", cycle));
}

}  // namespace

Config assemble(const SearchSpace& space, std::map<std::string, Value> chosen) {
  std::vector<Pending> pending;
  for (const auto& [path, domain] : space.domains()) {
    if (domain->is_function() && !chosen.contains(path)) pending.push_back({path, domain, {}});
  }
  // Each round computes what no longer misses anything; without progress the rest is stuck.
  while (!pending.empty()) {
    std::vector<Pending> stuck;
    for (Pending& one : pending) {
      try {
        const auto& function = std::get<Domain::SampleFrom>(one.domain->kind()).function;
        chosen[one.path] = function(build_config(space, chosen));
      } catch (const Error& error) {
        one.complaint = error.what();
        stuck.push_back(std::move(one));
      }
    }
    if (stuck.size() == pending.size()) fail(stuck);
    pending = std::move(stuck);
  }
  return build_config(space, chosen);
}

}  // namespace tune
