#include "core/object_store.h"

#include <algorithm>
#include <iterator>

namespace tune {

std::vector<std::string> all_names(ObjectStore& store, const std::string& prefix) {
  std::vector<std::string> names;
  while (true) {
    std::vector<std::string> more = store.list(prefix, names.empty() ? "" : names.back());
    std::move(more.begin(), more.end(), std::back_inserter(names));
    if (more.size() < ObjectStore::kMaxListed) return names;
  }
}

void prove(ObjectStore& store, const std::string& name) {
  using Kind = ObjectError::Kind;
  const std::string content = "this object proves that " + name + " can be written";
  store.put(name, content);
  const bool is_listed = std::ranges::count(store.list(name, ""), name) == 1;
  const bool is_same = store.get(name) == content;
  store.remove(name);
  if (!is_listed) throw ObjectError(Kind::kRefused, "what was written to it is not listed");
  if (!is_same) throw ObjectError(Kind::kRefused, "what was written to it reads otherwise");
}

}  // namespace tune
