#include "tune/results/record_channel.h"

#include <utility>

#include "core/wire.h"

namespace tune {

void RecordChannel::record(const Record& record, const Telling& telling) {
  for (Logger* keeper : keepers_) keeper->record(record, telling);
  if (telling.is_again) return;
  for (const Watcher& watcher : watchers_) watcher(record);
}

void RecordChannel::flush() {
  for (Logger* keeper : keepers_) keeper->flush();
}

std::future<std::string> RecordChannel::save() {
  std::vector<std::future<std::string>> states;
  for (Logger* keeper : keepers_) states.push_back(keeper->save());
  return std::async(std::launch::deferred, [states = std::move(states)]() mutable {
    PackWriter out;
    out.array(states.size());
    for (std::future<std::string>& state : states) out.binary(state.get());
    return out.take();
  });
}

// Before there was this channel, a snapshot had the state of the first keeper alone: a map.
void RecordChannel::restore(std::string_view state) {
  PackReader in(state);
  if (in.peek() == PackReader::Type::kMap) return keepers_.front()->restore(state);
  const std::size_t count = in.array();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view one = in.binary();
    if (i < keepers_.size()) keepers_[i]->restore(one);
  }
  in.expect_end();
}

}  // namespace tune
