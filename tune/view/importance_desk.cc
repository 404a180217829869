#include "tune/view/importance_desk.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/platform/deaf_thread.h"
#include "tune/results/importance_reader.h"
#include "tune/results/importance_value.h"

namespace tune::view {

namespace {

constexpr std::size_t kMostKept = 64;  // experiments
constexpr std::size_t kMostReaders = 2;  // 30 MB each, of a hundred thousand trials
constexpr int kNice = 10;

Value found_by(ImportanceReader& reader, const ImportanceReader::Question& question) {
  try {
    return Value{{"importance", to_value(reader.find(question))}};
  } catch (const std::exception& error) {  // too few trials, say
    return Value{{"problem", error.what()}};
  }
}

ImportanceReader::Question question_of(const Experiment& experiment) {
  const ExperimentHead& head = experiment.head();
  const History& history = experiment.history();
  ImportanceReader::Question question{.directory = head.directory,
                                      .id_prefix = experiment.id_prefix(),
                                      .metric = head.metric,
                                      .mode = head.mode,
                                      .has_replaced = !history.descents().empty(),
                                      .trials = {}};
  const Value* objectives = head.spec.find("objectives");
  if (head.metric.empty() && objectives != nullptr && objectives->is_list() &&
      !objectives->list().empty()) {
    const Value& first = objectives->list().front();
    question.metric = first.get_or("metric", "");
    question.mode = first.get_or("mode", "max") == "min" ? Mode::kMin : Mode::kMax;
  }
  const TrialTable& table = experiment.trials();
  question.trials.reserve(table.size());
  for (std::size_t row = 0; row < table.size(); ++row) {
    const TrialRow& trial = table.row(row);
    const TrialStory* story = history.story(trial.number);
    const bool was_cut_short = story != nullptr && story->was_cut_short;
    question.trials.push_back({trial.number, trial.change, trial.status, was_cut_short});
  }
  std::ranges::sort(question.trials, {}, &ImportanceReader::Known::number);
  return question;
}

}  // namespace

class ImportanceDesk::Inside {
 public:
  Inside() : thread_(deaf_thread([this] { work(); })) {}
  ~Inside() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  Value ask(const Experiment& experiment) {
    const std::lock_guard lock(mutex_);
    const std::string& key = experiment.head().key;
    const auto known = known_.find(key);
    const bool is_current = known != known_.end() && known->second.at == experiment.change();
    const bool is_asked = wanted_ && wanted_->key == key && wanted_->change == experiment.change();
    if (!is_current && !is_asked) {
      wanted_ = Wanted{key, experiment.change(), question_of(experiment)};
      changed_.notify_all();
    }
    Value told = known == known_.end() ? Value::make_map() : known->second.told;
    told.set("is_current", is_current);
    return told;
  }

 private:
  struct Wanted {
    std::string key;
    std::uint64_t change = 0;
    ImportanceReader::Question question;
  };
  struct Known {
    std::uint64_t at = 0;
    Value told;
  };

  // It reads files, for seconds at first: whoever opens the page meanwhile comes first.
  void work() {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || wanted_; });
      if (ends_) return;
      const Wanted wanted = *std::exchange(wanted_, std::nullopt);
      lock.unlock();
      Value told = found_by(reader_of(wanted.key), wanted.question);
      lock.lock();
      if (known_.size() >= kMostKept) known_.clear();
      known_.insert_or_assign(wanted.key, Known{wanted.change, std::move(told)});
    }
  }

  // The thread's alone.
  ImportanceReader& reader_of(const std::string& key) {
    const auto is_it = [&](const auto& one) { return one.first == key; };
    const auto found = std::find_if(readers_.begin(), readers_.end(), is_it);
    if (found != readers_.end()) {
      std::rotate(readers_.begin(), found, found + 1);
    } else {
      if (readers_.size() >= kMostReaders) readers_.pop_back();
      readers_.emplace(readers_.begin(), key, ImportanceReader());
    }
    return readers_.front().second;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Known> known_;  // by experiment
  std::optional<Wanted> wanted_;        // the newest question
  std::vector<std::pair<std::string, ImportanceReader>> readers_;  // the one used last first
  bool ends_ = false;
  std::thread thread_;  // last: it uses the others
};

ImportanceDesk::ImportanceDesk() : inside_(std::make_unique<Inside>()) {}
ImportanceDesk::~ImportanceDesk() = default;

Value ImportanceDesk::ask(const Experiment& experiment) {
  return inside_->ask(experiment);
}

}  // namespace tune::view
