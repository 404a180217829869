// Writes the first inputs of the targets whose input is not text: `fuzz_seeds tests/fuzz/corpus`.
// To be run again when messages change.
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "core/agent_contract.h"
#include "core/filled.h"
#include "core/frame.h"
#include "core/link.h"
#include "core/platform/files.h"
#include "core/trial.h"
#include "core/worker_contract.h"
#include "fuzz/journal_experiment.h"
#include "fuzz/kinds.h"
#include "memory_store.h"
#include "tune/drive/journaled_controller.h"

namespace {

using namespace tune;
namespace fs = std::filesystem;

class NoLogger : public Logger {
 public:
  void record(const Record&, const Telling&) override {}
  void flush() override {}
  std::future<std::string> save() override { return ready(""); }
  void restore(std::string_view) override {}
};

void write(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  write_file_atomically(file, content);
}

void write_message(const fs::path& folder, fuzz::Kind kind, const std::string& name,
                   const std::string& bytes) {
  const char letter = static_cast<char>(kind);
  write(folder / (letter + ("-" + name)), letter + bytes);
}

template <class Variant, std::size_t... I>
void write_variant(const fs::path& folder, fuzz::Kind kind, std::index_sequence<I...>) {
  (write_message(folder, kind, std::to_string(I),
                 encoded(Variant(std::in_place_index<I>,
                                 testing::filled<std::variant_alternative_t<I, Variant>>()))),
   ...);
}

template <class Variant>
void write_variant(const fs::path& folder, fuzz::Kind kind) {
  write_variant<Variant>(folder, kind, std::make_index_sequence<std::variant_size_v<Variant>>());
}

// Lists within lists, each of which claims all that is left.
std::string claims() {
  constexpr std::size_t kBytes = 4096;
  PackWriter out;
  for (int depth = 0; depth < 60; ++depth) out.array(kBytes - out.bytes().size() - 3);
  std::string bytes = out.take();
  bytes.resize(kBytes, '\x01');
  return bytes;
}

void write_messages(const fs::path& folder) {
  write_variant<Command>(folder, fuzz::Kind::kCommand);
  write_variant<AgentEvent>(folder, fuzz::Kind::kAgentEvent);
  write_variant<WorkerCommand>(folder, fuzz::Kind::kWorkerCommand);
  write_variant<WorkerEvent>(folder, fuzz::Kind::kWorkerEvent);
  write_variant<ZygoteMessage>(folder, fuzz::Kind::kZygoteMessage);
  write_message(folder, fuzz::Kind::kSpawnRequest, "0", encoded(testing::filled<SpawnRequest>()));
  write_message(folder, fuzz::Kind::kTrial, "0", encoded(testing::filled<Trial>()));
  const Value result{{"loss", {{"train", 0.5}, {"test", list({1, -1, nullptr, true, "text"})}}},
                     {"done", false}};
  write_message(folder, fuzz::Kind::kResult, "0", pack(result).bytes);
  write_message(folder, fuzz::Kind::kResult, "1", claims());
}

void write_frames(const fs::path& folder) {
  Link sender(2);
  for (const char* text : {"a", "bc", ""}) sender.send(text);
  std::string stream(1, '\5');  // read in pieces of five bytes
  for (const std::string& frame : sender.frames()) append_frame(stream, frame);
  write(folder / "new-peer", stream);

  Link old(1);
  old.send("of an older life");
  for (const std::string& frame : old.frames()) append_frame(stream, frame);
  append_frame(stream, sender.heartbeat());
  write(folder / "two-lives", stream);
}

// ---- A short experiment -------------------------------------------------------------------------

class ShortExperiment {
 public:
  ShortExperiment() : experiment_(store_, fuzz::journal_experiment(), &logger_) { run(); }

  std::string entries() {
    std::string bytes;
    for (const Entry& entry : store_.read({}, 1000)) append_frame(bytes, entry.payload);
    return bytes;
  }
  std::string snapshot() {
    experiment_.store(experiment_.snapshot());
    return store_.get("snapshot").value();
  }

 private:
  void run() {
    DriverStarted started;
    started.epoch = 1;
    started.num_samples = 4;
    started.max_failures = 1;
    experiment_.take_over({now_, WallTime(now_), {started}});
    AgentHello hello;
    hello.cpu_units = 2 * kUnit;
    ZygoteReady ready;
    ready.trainables = {{"T", true, false}};
    give({FromAgent{{}, hello}, FromAgent{{}, ready}});
    give({report(0, 1, 0.5), saved(0, 1), report(1, 1, 0.4)});
    give({ended(1, Outcome::kStopped), report(0, 2, 0.6), ended(0, Outcome::kSignal)});
    give({InterruptRequested{2}, DeadlineReached{}});
  }
  void give(std::vector<Event> events) {
    now_ += std::chrono::seconds(1);
    experiment_.commit({now_, WallTime(now_), std::move(events)});
  }
  template <class T>
  T of(std::uint32_t trial) const {
    T message;
    message.trial = TrialNumber{trial};
    message.attempt = AttemptNumber{1};
    return message;
  }
  Event report(std::uint32_t trial, std::uint64_t iteration, double metric) const {
    auto report = of<Reported>(trial);
    report.iteration = iteration;
    report.waiting = true;
    report.result = pack(Value{{"m", metric}});
    return FromAgent{{}, report};
  }
  Event saved(std::uint32_t trial, std::uint64_t iteration) const {
    auto saved = of<CheckpointSaved>(trial);
    saved.iteration = iteration;
    return FromAgent{{}, saved};
  }
  Event ended(std::uint32_t trial, Outcome outcome) const {
    auto ended = of<AttemptEnded>(trial);
    ended.outcome = outcome;
    return FromAgent{{}, ended};
  }

  testing::MemoryStore store_;
  NoLogger logger_;
  JournaledController experiment_;
  ExperimentTime now_{};
};

void write_journals(const fs::path& folder) {
  ShortExperiment experiment;
  std::string entries;
  append_frame(entries, "");  // no snapshot
  entries += experiment.entries();
  write(folder / "entries", entries);
  std::string snapshot;
  append_frame(snapshot, experiment.snapshot());
  write(folder / "snapshot", snapshot);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const fs::path corpus = arguments[1];
  write_messages(corpus / "messages");
  write_frames(corpus / "frames");
  write_journals(corpus / "journal");
  return 0;
}
