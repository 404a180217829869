// Replay: a sweep's journal told again to a controller of the same setup, to see whether it leads
// to the same decisions: what `tune replay` does. It finds faults of the machine, of the build, and
// of code that does not follow from events alone.
//
// The journal holds what happened, not what was decided. What was decided shows in
// - events.jsonl: every verdict, rung, launch, end and notice has its line, which must come out
//   again, word for word;
// - what workers did: they began attempts that were launched, waited where a verdict had told them
//   to wait, went on where it had not, and were stopped when it said so;
// - the answers of a searcher that learns, made again from what was known when it was asked;
// - params.json: the configuration of each trial, also one that was drawn at random.
// It ends at the first difference: after that nothing compares any more.
//
// Where a snapshot has taken the place of the journal's head, replay begins with its state. A
// question that was open then is not asked again, as what was known when it was put is gone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "core/store.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

struct ReplayReport {
  std::optional<EntryId> from;  // of a snapshot, after which it begins; nothing: the first event
  EntryId through;              // the last entry
  std::uint64_t events = 0;
  std::uint64_t launches = 0;        // attempts that began as they were launched
  std::uint64_t verdicts = 0;        // stops, pauses, places at rungs
  std::uint64_t waits = 0;           // reports that waited, or did not, as the worker was told
  std::uint64_t proposals = 0;       // configurations that a searcher made again
  std::uint64_t other_numbers = 0;   // of these, with other expectations: another build or machine
  std::uint64_t unasked = 0;         // answers to a question from before the snapshot
  std::uint64_t configurations = 0;  // of trials, as in params.json
  std::uint64_t lines = 0;           // of events.jsonl
  std::string remark;                // why something could not be compared; empty: all was
  struct Difference {
    std::uint64_t event = 0;  // counted from 1
    std::string entry;        // of the journal: "1-57"
    std::string what;
    std::string journaled;
    std::string replayed;
  };
  std::optional<Difference> difference;  // the first
};

// Replays what is in the store now, and compares it with the experiment's folder. `is_over`: no
// driver runs, and the experiment was finished, so that nothing may be missing. Writes nothing.
// Throws as Journal::replay and Controller::restore.
ReplayReport replay(Store& store, const ExperimentSpec& spec,
                    const std::filesystem::path& directory, bool is_over);

}  // namespace tune
