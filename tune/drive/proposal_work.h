// ProposalWork: answers of the searcher, made in a thread beside the driver's loop, one at a time.
// Thread and descriptor begin with the first question, so that a process can be forked before. An
// answer that takes longer than the experiment lasts is not waited for: its thread is left behind,
// and holds only what it was given.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/journal_format.h"
#include "tune/control/asking.h"
#include "tune/search/searcher.h"

namespace tune {

class ProposalWork {
 public:
  ProposalWork() = default;
  ~ProposalWork();
  ProposalWork(const ProposalWork&) = delete;

  // When the answer before it was taken. Error (kProcess) when there can be no thread or
  // descriptor.
  void ask(const Asking::Question& question, Searcher::Question make);
  // An answer, once. `took` is the time since ask(), or a longer one (answer_times.h).
  std::optional<Proposed> take();
  int descriptor() const;  // readable while there is an answer; -1: nothing was asked yet

  static constexpr std::chrono::milliseconds kEndPatience{2000};

 private:
  struct Shared;
  void start();
  static void work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;  // with the thread; null: nothing was asked yet
};

// Makes the answer here and now. What `make` throws is the answer's error, and so is an answer
// above kMaxAnswerBytes. `took` is left to the caller.
Proposed answer_now(std::uint64_t number, const Searcher::Question& make);

}  // namespace tune
