#include "tune/journal.h"

#include <fmt/format.h>

#include "core/wire.h"

namespace tune {

namespace {

constexpr std::size_t kReadBatch = 512;  // entries fetched at a time

}  // namespace

void Journal::replay(const std::function<void(const Turn&)>& visit) {
  TUNE_CHECK(!begun_);
  while (true) {
    const std::vector<Entry> batch = store_.read(last_, kReadBatch);
    for (const Entry& entry : batch) {
      Turn turn;
      try {
        PackReader in(entry.payload);
        decode(in, turn);
        in.expect_end();
      } catch (const Error& error) {
        throw Error(ErrorCode::kProtocol,
                    fmt::format("reading journal entry {}: {}: it is damaged, or was written by "
                                "another version of tune",
                                to_string(entry.id), error.what()));
      }
      visit(turn);
      last_ = entry.id;
    }
    if (batch.size() < kReadBatch) return;
  }
}

void Journal::append(const Turn& turn) {
  const EntryId id = begun_ ? EntryId{last_.epoch, last_.sequence + 1} : EntryId{next_epoch(), 0};
  store_.append(id, encoded(turn));
  last_ = id;
  begun_ = true;
}

}  // namespace tune
