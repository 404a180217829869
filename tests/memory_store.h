// A Store in memory. Several of them may share their contents, as drivers share a server.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/store.h"

namespace tune::testing {

class MemoryStore : public Store {
 public:
  struct Contents {
    std::map<EntryId, std::string> entries;
    std::optional<EntryId> last;
    std::optional<EntryId> trimmed;  // up to here a snapshot stands for the entries
    std::map<std::string, std::string, std::less<>> values;
  };

  MemoryStore() : contents_(std::make_shared<Contents>()) {}
  explicit MemoryStore(std::shared_ptr<Contents> contents) : contents_(std::move(contents)) {}

  void append(EntryId id, std::string_view payload) override {
    refuse_too_large(payload.size(), "appending to the journal");
    if (!contents_->last || id > *contents_->last) {
      contents_->entries.emplace(id, payload);
      contents_->last = id;
      return;
    }
    const auto found = contents_->entries.find(id);
    if (found != contents_->entries.end() && found->second == payload) return;
    throw SupersededError("appending entry " + to_string(id) + ": the journal is at " +
                          to_string(*contents_->last));
  }

  std::vector<Entry> read(EntryId after, std::size_t limit) override {
    std::vector<Entry> found;
    auto next = contents_->entries.upper_bound(after);
    for (; next != contents_->entries.end() && found.size() < limit; ++next) {
      found.push_back({next->first, next->second});
    }
    return found;
  }

  std::optional<EntryId> last() override { return contents_->last; }

  void put(std::string_view name, std::string_view value) override {
    refuse_too_large(value.size(), "storing " + std::string(name));
    contents_->values.insert_or_assign(std::string(name), value);
  }

  std::optional<std::string> get(std::string_view name) override {
    const auto found = contents_->values.find(name);
    return found == contents_->values.end() ? std::nullopt : std::optional(found->second);
  }

  void remove(std::string_view name) override {
    if (const auto found = contents_->values.find(name); found != contents_->values.end()) {
      contents_->values.erase(found);
    }
  }

  void put_and_trim(std::string_view name, std::string_view value, EntryId through) override {
    if (contents_->last && contents_->last->epoch > through.epoch) {
      throw SupersededError("trimming to " + to_string(through) + ": the journal is at " +
                            to_string(*contents_->last));
    }
    put(name, value);
    contents_->trimmed = std::max(contents_->trimmed, std::optional(through));
    contents_->entries.erase(contents_->entries.begin(), contents_->entries.upper_bound(through));
  }

  void remove_all() override { *contents_ = {}; }

 protected:
  const std::shared_ptr<Contents>& contents() const { return contents_; }

 private:
  std::shared_ptr<Contents> contents_;
};

}  // namespace tune::testing
