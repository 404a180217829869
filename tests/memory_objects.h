// An object store in memory, whose requests a test makes fail.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/object_store.h"

namespace tune {

class MemoryObjects : public ObjectStore {
 public:
  std::map<std::string, std::string> objects;
  std::vector<std::string> requests;
  bool forgets = false;
  // May throw ObjectError, or anything, before or after the request of that number is carried out.
  std::function<void(std::size_t request)> before = [](std::size_t) {};
  std::function<void(std::size_t request)> after = [](std::size_t) {};

  void put(const std::string& name, std::string_view bytes) override {
    asked("put " + name, [&] {
      if (!forgets) objects[name] = std::string(bytes);
    });
  }
  std::string get(const std::string& name) override {
    std::string found;
    asked("get " + name, [&] {
      if (!objects.contains(name)) {
        throw ObjectError(ObjectError::Kind::kAbsent, "reading " + name + ": it is not there");
      }
      found = objects.at(name);
    });
    return found;
  }
  std::vector<std::string> list(const std::string& prefix, const std::string& last) override {
    std::vector<std::string> names;
    asked("list " + prefix, [&] {
      for (auto at = objects.upper_bound(last); at != objects.end(); ++at) {
        if (names.size() == kMaxListed) break;
        if (at->first.starts_with(prefix)) names.push_back(at->first);
      }
    });
    return names;
  }
  void remove(const std::string& name) override {
    asked("remove " + name, [&] { objects.erase(name); });
  }

 private:
  template <class What>
  void asked(const std::string& request, What what) {
    requests.push_back(request);
    const std::size_t number = requests.size();
    before(number);
    what();
    after(number);
  }
};

}  // namespace tune
