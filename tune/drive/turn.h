// Turns: the one order in which a turn of the driver happens: appended, acknowledged, commands,
// files. The driver, the simulator and the benchmarks run it step by step, each with its own edges.
//
//   1. The turn's events are appended to the journal, and the controller handles them.
//   2. Agents are told that what they said is kept.
//   3. The commands that follow from it are sent, and the searcher's question is put.
//   4. The lines of its results are written to the log files.
//   5. Checkpoints that no record needs any more are removed, and those that lost attempts have
//      left without one.
//   6. Now and then a snapshot takes the place of the journal's entries.
//
// Each simpler order loses something when the driver is killed between two of its steps.
// Acknowledging first (an agent could go on sooner) forgets results: the agent drops what is not in
// the journal yet. Commands before the append (one disk write sooner) start a trial that the next
// driver knows nothing of, and promise its GPU again. Removing before the append deletes the
// checkpoint that the journal still names. Log lines before the append stand twice after a resume,
// when the turn comes again in another shape; before the commands they would keep GPUs waiting for
// a disk. A snapshot may only stand for entries whose log lines are on the disk: taken and stored
// in one step it either stops the loop for the disk's flush or loses the lines in a power cut; so
// it is taken at the end of one turn and stored at the end of a later one, when the flush beside
// the loop is done. Replaying commands to make up for any of these does not help: a driver cannot
// know which of them were carried out. All that follows the append is therefore either void for the
// next driver (commands), sent again by the other side (acknowledgements), or done again (files).
#pragma once

#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/peers.h"
#include "tune/drive/driver_machine.h"
#include "tune/drive/journaled_controller.h"

namespace tune {

// The world as a turn needs it.
class TurnEdges {
 public:
  virtual ~TurnEdges() = default;

  // Called before each step, which is not taken when it throws: StoreSilentError while it is not
  // known whether the experiment is still this driver's, SupersededError when it is not.
  virtual void check_owner() {}

  virtual DriverMachine::Time now() const = 0;  // of a monotonic clock
  virtual WallTime wall() const = 0;
  virtual const Peers& peers() const = 0;

  virtual void acknowledge(AgentNumber agent, Link::Position through) = 0;
  virtual void send(AgentNumber agent, const Command& command) = 0;  // queued until
  virtual void flush_commands() = 0;                                 // with acknowledgements
  // Makes the answer to this question beside the loop (DriverMachine::on_proposed), by a call of
  // `make`. There is no other question until then.
  virtual void ask(const Asking::Question& question, Searcher::Question make) = 0;
  // Files are written and removed beside the loop, in this order. False: so much waits there that
  // agents' events have to wait as well (they are not acknowledged, so the agents stop reading
  // their workers when their credit is spent).
  virtual bool has_room() const { return true; }
  virtual void write_results() = 0;
  virtual void remove(const RemoveCheckpoint& checkpoint) = 0;
  // Removes the trial's checkpoints without a record, of attempts up to `lost`, which are over.
  virtual void remove_unrecorded(const Trial& trial, AttemptNumber lost) = 0;
  // Begins, beside the loop, to flush to disk the files that are complete once `state` is ready.
  // Later flushed_results gives that state, once.
  virtual void flush_results(std::future<std::string> state) = 0;
  virtual std::optional<std::string> flushed_results() = 0;

  // Tells the user who gave an order what came of it: the journal has it.
  virtual void answer(const OrderAnswer&) {}
  // Shows the user a notice of this turn; it stands in the journal with the next one.
  virtual void show_notice(const std::string&) {}

  // For observers: called with a turn before it is appended, and again when the controller has
  // handled it and nothing was carried out.
  virtual void turn_begins(const Turn&) {}
  virtual void turn_is_handled(const Turn&, const Effects&) {}
};

class Turns {
 public:
  Turns(JournaledController& experiment, DriverMachine& machine, TurnEdges& edges)
      : experiment_(experiment), machine_(machine), edges_(edges) {}

  // Begins the driver's first turn, which takes the epoch; steps follow. Throws as
  // JournaledController::take_over.
  void take_over(const DriverStarted& event);
  // The next step of the turn, or the first one of the next turn. False: there is no reason for a
  // turn now (when the experiment is over, only the driver's own notices are one), or the store
  // does not answer. The machine is told of such a silence, and the step is to be tried again.
  // Throws as JournaledController::commit and store.
  bool step();
  // All steps up to the end of the turn.
  bool run() {
    while (step()) {
      if (is_idle()) return true;
    }
    return false;
  }
  bool is_idle() const { return next_ == Step::kBegin; }  // between two turns
  // The next turn ends with a snapshot, whether the journal is long or not.
  void want_snapshot() { snapshot_is_wanted_ = true; }

 private:
  enum class Step : std::uint8_t {
    kBegin,
    kAppend,
    kAcknowledge,
    kCommands,
    kResults,
    kRemovals,
    kSettle,
    kSnapshot,
  };
  bool take_step();
  bool begin();
  void append();
  void acknowledge();
  void send_commands();
  void ask();
  void remove_next();
  void settle_next();
  Step after_removals() const;
  void keep_journal_short();
  void tell_what_was_mended();

  JournaledController& experiment_;
  DriverMachine& machine_;
  TurnEdges& edges_;
  Step next_ = Step::kBegin;
  Turn turn_;
  std::map<AgentNumber, Link::Position> heard_;  // to be acknowledged
  Effects effects_;
  std::size_t removed_ = 0;           // of its removals
  std::optional<Snapshot> snapshot_;  // to be stored when the results are flushed
  bool snapshot_is_ready_ = false;    // they are
  bool snapshot_is_wanted_ = false;
  std::uint64_t asked_ = 0;  // the newest question of this driver
};

}  // namespace tune
