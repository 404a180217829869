#include "tune/results/trial_log.h"

#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

#include "core/platform/files.h"
#include "tune/spec/experiment_identity.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

// Two descriptors each. The first trials keep theirs until they rest; the results of the others are
// written to files that are opened for it and closed again. Giving each turn's trials the
// descriptors of those that were written longest ago is worse: of 1,000 trials that report in turn,
// the next one is always one that has just lost its own, and none ever finds its file open.
constexpr std::size_t kMaxKeepers = 256;
// The limit on text that is gathered before it is written.
constexpr std::size_t kMaxDirtyBytes = 8u << 20;

std::string failure_text(const LoggedFailure& failed) {
  const Failure& failure = failed.failure;
  std::string text = fmt::format("--- attempt {} failed at {}: {} ---\nrank {}: {}\n",
                                 failure.attempt.value, local_date(unix_second(failed.wall)),
                                 failed.retried ? "it is tried again" : "the trial is in ERROR",
                                 failure.rank, failure.cause);
  if (!failure.stderr_tail.empty()) {
    text += "its last lines on stderr:\n" + failure.stderr_tail;
    if (text.back() != '\n') text += '\n';
  }
  return text;
}

}  // namespace

TrialLog::TrialLog(fs::path directory, const ExperimentSpec& spec)
    : directory_(std::move(directory)), experiment_(experiment_id_of(spec)), tags_(spec) {}

fs::path TrialLog::trial_directory(TrialNumber trial) const {
  return directory_ / trial_id(experiment_, trial);
}

void TrialLog::take(const std::vector<Logged>& all) {
  const LowestCuts cuts = std::exchange(is_replay_, false) ? lowest_cuts(all) : LowestCuts();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_cut_away(all[i], i, cuts)) continue;
    std::visit([this](const auto& what) { on(what); }, all[i]);
    if (dirty_bytes_ > kMaxDirtyBytes) flush();
  }
}

// The trials of a replay whose files were cut to fewer results than were saved. The files may have
// so few by now; what the replay tells before that cut can neither be appended to them, nor is it
// needed.
TrialLog::LowestCuts TrialLog::lowest_cuts(const std::vector<Logged>& all) const {
  LowestCuts lowest;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* cut = std::get_if<LoggedCut>(&all[i]);
    if (cut == nullptr || cut->trial.value >= kept_.size()) continue;
    if (cut->iteration >= kept_[cut->trial.value].lengths.lines) continue;
    const auto [found, is_first] = lowest.try_emplace(cut->trial.value, i);
    if (is_first) continue;
    const auto& lower = std::get<LoggedCut>(all[found->second]);
    if (cut->iteration <= lower.iteration) found->second = i;
  }
  return lowest;
}

bool TrialLog::is_cut_away(const Logged& logged, std::size_t place, const LowestCuts& cuts) {
  if (cuts.empty()) return false;
  const auto is_before = [&](TrialNumber trial) {
    const auto cut = cuts.find(trial.value);
    return cut != cuts.end() && place < cut->second;
  };
  if (const auto* result = std::get_if<LoggedResult>(&logged))
    return is_before(result->report.trial);
  const auto* cut = std::get_if<LoggedCut>(&logged);
  return cut != nullptr && is_before(cut->trial);
}

void TrialLog::flush() {
  for (TrialNumber number : dirty_) {
    const auto open = open_.find(number.value);
    if (open != open_.end()) flush(number, *open->second);
  }
  dirty_.clear();
  dirty_bytes_ = 0;
}

void TrialLog::flush(TrialNumber number, Open& open) {
  open.is_dirty = false;
  open.files.flush();
  if (!open.keeps_descriptors && keepers_ < kMaxKeepers) {
    open.keeps_descriptors = true;
    ++keepers_;
  }
  if (!open.keeps_descriptors) open.files.close();
  kept(number).lengths = open.files.lengths();
  kept(number).may_hold_more = false;
}

void TrialLog::save(PackWriter& out) {
  flush();
  encode(out, kept_);
}

void TrialLog::restore(PackReader& in) {
  decode(in, kept_);
  for (Kept& trial : kept_) trial.may_hold_more = trial.error_may_hold_more = true;
  is_replay_ = true;
}

// ---- Records ------------------------------------------------------------------------------------

// The folder may be there: an earlier driver's, and the content of its files is told again, or one
// that a worker was quicker to make, which holds none of these files yet.
void TrialLog::on(const LoggedTrial& added) {
  const fs::path directory = trial_directory(added.trial);
  const bool is_new = mkdir(directory.c_str(), 0777) == 0;
  if (!is_new && errno != EEXIST) throw file_error("making the folder", directory, errno);
  write_params(added.trial, added.config);
  kept(added.trial) = {{}, 0, !is_new, !is_new};
  if (!is_new) mark_dirty(added.trial, open(added.trial));
}

namespace {

// The files of drivers that were killed while they wrote this one anew.
void remove_broken_writes(const fs::path& file) {
  const std::string prefix = file.filename().string() + ".tmp-";
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(file.parent_path())) {
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  }
  for (const fs::path& one : found) fs::remove(one);
}

}  // namespace

void TrialLog::write_params(TrialNumber trial, const Packed& config) {
  std::string text;
  PackReader in(config.bytes);
  append_packed_json(text, in);
  text += '\n';
  const fs::path params = trial_directory(trial) / "params.json";
  if (!fs::exists(params)) return AppendFile(params, true).write(text);
  if (file_holds(params, text)) return;
  remove_broken_writes(params);
  ReplacedFile replaced(params);
  replaced.write(text);
  replaced.commit(Flush::kNo);  // the journal would bring it back
}

// The one before stands in events.jsonl.
void TrialLog::on(const LoggedConfig& changed) {
  write_params(changed.trial, changed.config);
}

void TrialLog::on(const LoggedStart& started) {
  Open& trial = open(started.trial);
  trial.tag = tags_.of(started.trial, started.config);
}

// Its text is written at once: of 10,000 short trials that end before the next flush, each would
// else hold its columns and buffers until then, and all of them fit into no cache.
void TrialLog::on(const LoggedRest& rest) {
  const auto open = open_.find(rest.trial.value);
  if (open == open_.end()) return;
  if (open->second->is_dirty) flush(rest.trial, *open->second);
  keepers_ -= open->second->keeps_descriptors;
  open_.erase(open);
}

void TrialLog::on(const LoggedResult& result) {
  Open& trial = open(result.report.trial);
  const auto [ip, pid] = split_location(result.location);
  const std::int64_t second = unix_second(result.wall);
  make_result(text_, result.report,
              {.trial_id = trial.id,
               .experiment_tag = trial.tag,
               .done = result.done,
               .second = second,
               .date = dates_.of(second),
               .hostname = result.hostname ? *result.hostname : std::string_view(),
               .node_ip = ip,
               .pid = pid});
  trial.files.append(text_);
  dirty_bytes_ += 2 * text_.json().size();
  mark_dirty(result.report.trial, trial);
}

void TrialLog::on(const LoggedCut& cut) {
  Open& trial = open(cut.trial);
  trial.files.cut(cut.iteration);
  mark_dirty(cut.trial, trial);
}

void TrialLog::on(const LoggedFailure& failed) {
  const std::string text = failure_text(failed);
  const fs::path file = trial_directory(failed.trial) / "error.txt";
  Kept& trial = kept(failed.trial);
  if (std::exchange(trial.error_may_hold_more, false)) cut_file(file, trial.error_bytes);
  AppendFile(file, false).write(text);
  trial.error_bytes += text.size();
}

TrialLog::Open& TrialLog::open(TrialNumber trial) {
  std::unique_ptr<Open>& found = open_[trial.value];
  if (!found) {
    const Kept& known = kept(trial);
    found = std::make_unique<Open>(
        TrialFiles(trial_directory(trial), known.lengths, known.may_hold_more));
    found->id = trial_id(experiment_, trial);
  }
  return *found;
}

TrialLog::Kept& TrialLog::kept(TrialNumber trial) {
  if (trial.value >= kept_.size()) kept_.resize(trial.value + 1);
  return kept_[trial.value];
}

void TrialLog::mark_dirty(TrialNumber number, Open& open) {
  if (!open.is_dirty) dirty_.push_back(number);
  open.is_dirty = true;
}

}  // namespace tune
