// A store that counts entries and drops all but the newest, for a writer that never reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/store.h"

namespace tune::simulator {

class CountingStore : public Store {
 public:
  // The memory of a server for an entry beside its payload, generously.
  static constexpr std::size_t kEntryBytes = 64;

  void append(EntryId id, std::string_view payload) override {
    last_ = id;
    entries_.emplace_back(id, payload.size() + kEntryBytes);
    stream_bytes_ += entries_.back().second;
    written_bytes_ += payload.size();
    peak_bytes_ = std::max(peak_bytes_, stream_bytes_);
    newest_ = payload;
  }
  // The newest entry: a driver reads back the one by which it has taken its epoch.
  std::vector<Entry> read(EntryId after, std::size_t) override {
    return last_ && *last_ > after ? std::vector<Entry>{{*last_, newest_}} : std::vector<Entry>{};
  }
  std::optional<EntryId> last() override { return last_; }
  void put(std::string_view, std::string_view value) override {  // a part of a snapshot
    parts_bytes_ += value.size();
    written_bytes_ += value.size();
  }
  std::optional<std::string> get(std::string_view) override { return std::nullopt; }
  void remove(std::string_view) override {}
  void put_and_trim(std::string_view, std::string_view value, EntryId through) override {
    snapshot_bytes_ = value.size() + std::exchange(parts_bytes_, 0);
    written_bytes_ += value.size();
    ++snapshots_;
    for (; !entries_.empty() && entries_.front().first <= through; entries_.pop_front()) {
      stream_bytes_ -= entries_.front().second;
    }
  }
  void remove_all() override {
    last_.reset();
    entries_.clear();
    stream_bytes_ = snapshot_bytes_ = 0;
  }

  // The bytes of the entries that are there; and the maximum since the last call.
  std::size_t stream_bytes() const { return stream_bytes_; }
  std::size_t take_peak() { return std::exchange(peak_bytes_, stream_bytes_); }
  std::size_t snapshot_bytes() const { return snapshot_bytes_; }
  std::uint64_t snapshots() const { return snapshots_; }
  std::uint64_t written_bytes() const { return written_bytes_; }  // entries and snapshots

 private:
  std::optional<EntryId> last_;
  std::string newest_;
  std::deque<std::pair<EntryId, std::size_t>> entries_;
  std::size_t stream_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  std::size_t snapshot_bytes_ = 0;
  std::size_t parts_bytes_ = 0;  // of the snapshot that is being written
  std::uint64_t snapshots_ = 0;
  std::uint64_t written_bytes_ = 0;
};

}  // namespace tune::simulator
