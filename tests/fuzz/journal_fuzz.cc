// A damaged journal: entries (frames, see core/frame.h) of which the first is a snapshot when it is
// not empty. Reading it succeeds, or names the damaged entry.
#include <string>

#include "core/frame.h"
#include "fuzz/check.h"
#include "fuzz/journal_experiment.h"
#include "memory_store.h"
#include "tune/drive/journaled_controller.h"

namespace {

using namespace tune;

// Trials without end on a node without end are not damage. An entry that is not a turn begins none.
bool is_bounded(std::string_view payload) try {
  const auto turn = decoded<Turn>(payload);
  for (const Event& event : turn.events) {
    const auto* started = std::get_if<DriverStarted>(&event);
    if (started != nullptr && (started->num_samples < 0 || started->num_samples > 20)) return false;
  }
  return true;
} catch (const Error&) {
  return true;
}

void replay(std::string_view bytes) {
  const auto contents = std::make_shared<testing::MemoryStore::Contents>();
  FrameBuffer frames;
  frames.append(bytes);
  for (std::uint64_t sequence = 0; const auto frame = frames.next(); ++sequence) {
    if (sequence == 0) {
      if (!frame->empty()) contents->values.emplace("snapshot", *frame);
      continue;
    }
    if (!is_bounded(*frame)) return;
    contents->entries.emplace(EntryId{1, sequence - 1}, *frame);
    contents->last = EntryId{1, sequence - 1};
  }
  testing::MemoryStore store(contents);
  JournaledController experiment(store, fuzz::journal_experiment(), nullptr);
  experiment.replay();
}

}  // namespace

TUNE_FUZZ_TARGET(journal)(const std::uint8_t* data, std::size_t size) {
  fuzz::refused_as(ErrorCode::kProtocol, [&] { replay(fuzz::text_of(data, size)); });
  return 0;
}
