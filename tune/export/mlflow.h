// MlflowExport: an experiment on an MLflow server: a run for the experiment, and below it a run for
// each trial with its configuration as params and its results as metrics by iteration.
//
// The server alone keeps how far the export has come. The simpler way, a cursor beside the
// experiment, fails: it speaks of one server, and the address of that must not be stored; and when
// an answer is lost on its way, the run that was made stands there without the cursor's knowledge,
// and another one is made. So each run is marked by tags, runs are looked for by these before any
// is made, and a trial's run has a tag with the number and the hash of the results that it was
// sent, in the same request as these.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/platform/process.h"
#include "tune/export/exporter.h"
#include "tune/export/follower.h"
#include "tune/export/mlflow_batch.h"
#include "tune/export/mlflow_rest.h"
#include "tune/results/experiment_head.h"

namespace tune {

class Analysis;
struct TrialSummary;

struct MlflowOptions {
  // After a call that failed; it is doubled up to a minute while they fail.
  std::chrono::milliseconds first_pause{2000};
  // The files of the best trial become a version of this registered model; empty: of none.
  std::string registered_model = {};
};

class MlflowExport : public Exporter, private FolderListener {
 public:
  // Throws Error (kBadInput) when it is not an experiment's folder, or of a newer tune. No server
  // is asked yet.
  MlflowExport(const std::filesystem::path& experiment, MlflowServer server,
               MlflowOptions options = {});

  // While the server cannot be used nothing is written and nothing thrown: the next calls try again
  // after a pause.
  void write_news(const std::function<bool()>& ends) override;
  // Also sends the files of the best trial. Throws Error (kIo) when the server could not be told
  // all, Error (kBadInput) while another process tells it.
  void finish() override;
  std::vector<std::string> take_problems() override;

  const std::string& parent_run() const { return parent_.id; }  // empty: not known yet
  const std::string& mlflow_experiment() const { return mlflow_experiment_; }  // its id

 private:
  struct Run {
    std::string id;
    std::uint64_t sent = 0, sent_hash = 0;                 // results, and the hash of their lines
    std::uint64_t read_hash = 0;                           // of the lines read so far
    std::string status = {}, told = {}, config_mark = {};  // as they stand there
    std::uint32_t attempts_seen = 0;
    bool is_redone = false;   // results that were sent have changed since
    bool is_refused = false;  // the server does not take what this run would be told
  };
  struct Outcome {  // of the experiment
    std::string status;
    double time = 0;
  };
  void result(const FollowedTrial& trial, std::string_view line, const std::string& where) override;
  void trial_is_read(const FollowedTrial& trial) override;

  bool has_target();
  bool find_runs();
  std::string find_experiment();
  void find_parent(const std::string& mark);
  void find_children();
  Run& run_of(const FollowedTrial& trial);
  void make_run(const FollowedTrial& trial, Run& run);
  void tell_config(const FollowedTrial& trial, Run& run);
  void add_metrics(std::string_view line, const std::string& where, std::uint64_t iteration,
                   Run& run);
  void send(Run& run);
  void send_again(const FollowedTrial& trial, Run& run);
  void tell_state(const FollowedTrial& trial, Run& run);
  void set_status(Run& run, const std::string& status, double ended);
  void accept(const MlflowAnswer& answer, Run& run);
  void on_trouble(const Error& error);
  Outcome outcome() const;
  void tell_best();
  void send_files(const Analysis& analysis, const TrialSummary& best, Run& run);
  void register_files(const Run& run, const std::string& source);

  std::filesystem::path experiment_;
  ExperimentHead head_;
  MlflowServer server_;
  MlflowOptions options_;
  FileDescriptor lock_;  // on the experiment's folder; open when this process tells the server

  std::string mlflow_experiment_;
  Run parent_;
  std::map<std::uint32_t, Run> runs_;  // by trial
  std::optional<Follower> follower_;   // begun anew after trouble
  std::size_t told_problems_ = 0;      // of the follower
  MlflowBatch batch_;                  // of the trial that is read
  // The newest result that is in the batch as a whole, and the hash of the lines up to it.
  std::uint64_t batch_iteration_ = 0, batch_hash_ = 0;
  std::vector<std::pair<std::string, double>> numbers_;  // of a line

  std::vector<std::string> problems_;
  std::string trouble_;  // why the server cannot be used; empty: it can
  std::chrono::milliseconds pause_{0};
  std::chrono::steady_clock::time_point next_try_{};
};

}  // namespace tune
