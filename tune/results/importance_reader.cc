#include "tune/results/importance_reader.h"

#include <utility>

#include <fmt/format.h>

#include "tune/results/experiment_folder.h"

namespace tune {

Importance ImportanceReader::find(const Question& question) {
  if (!encoding_) encoding_.emplace(encoding_of(read_spec(question.directory).options.config));
  std::map<std::string, FirstReplaced> replaced;
  if (question.has_replaced) replaced = first_replaced(question.directory);
  std::vector<const RankedTrial*> trials;
  trials.reserve(question.trials.size());
  for (const Known& known : question.trials) {
    const std::string id = fmt::format("{}{:05}", question.id_prefix, known.number);
    const auto found = replaced.find(id);
    const FirstReplaced* former = found == replaced.end() ? nullptr : &found->second;
    const Standing standing = standing_of(known.status, known.was_cut_short, former != nullptr);
    Kept& kept = kept_[known.number];
    if (kept.change != known.change) {
      const TrialSummary files{id, known.status, question.directory / id};
      kept.trial =
          ranked_trial(recorded_trial(files, question.metric, standing, former), *encoding_);
      kept.change = known.change;
      ++trials_read_;
    }
    kept.trial.standing = standing;
    trials.push_back(&kept.trial);
  }
  return importance_of(trials, *encoding_, {question.directory, question.metric, question.mode});
}

}  // namespace tune
