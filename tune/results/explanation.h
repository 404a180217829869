// Explanation: why a trial was tried, how it stood on its way, and why it ended. Read from the
// experiment's folder alone (events.jsonl, params.json, result.json, experiment.json), so that it
// is there while a sweep runs and after it, wherever the folder is, and for any searcher: one that
// draws at random says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/trial.h"
#include "core/value.h"
#include "tune/results/analysis.h"
#include "tune/results/merit_standing.h"
#include "tune/search/earlier_trial.h"

namespace tune {

struct Explanation {
  std::string trial;
  TrialStatus status = TrialStatus::kPending;
  Config config;           // the newest, when it was replaced
  Config proposed_config;  // what it began with, which is what the proposal tells of
  std::string searcher;    // "gp"; empty: the program's own
  bool learns = true;      // whether its proposals follow from results
  std::string metric;      // empty: none, or several objectives
  Mode mode = Mode::kMax;
  std::vector<std::string> goals;  // the metric, or those of the objectives
  bool is_constrained = false;     // whether there are constraints

  // ---- Why it was tried
  enum class Source : std::uint8_t {
    kRandom,    // drawn at random, whatever the results
    kGrid,      // a cell of the grid; what is not a grid_search was drawn
    kGiven,     // one of points_to_evaluate
    kProposed,  // by a searcher that tells of it: see `proposed`
    kUntold,    // by a searcher that tells nothing of it
    kAdded,     // by a user, while the sweep ran: see `orders`
  };
  Source source = Source::kRandom;
  std::vector<std::string> grid;  // kGrid: "layers = 2"
  std::size_t given = 0;          // kGiven: which one, from 0
  struct Proposed {
    std::string origin;  // "start_up", "random", "model" or "fallback"
    std::string by;      // of the model: the searcher, or the one that it asked
    std::uint64_t results_known = 0;
    std::uint64_t pending_known = 0;
    std::optional<double> mean;  // in the model's own scale, where it expects a value
    std::optional<double> standard_deviation;
    std::optional<double> acquisition;
    std::optional<double> margin;  // an improvement counted from so far above the best
    std::string note;
  };
  std::optional<Proposed> proposed;
  std::vector<std::string> beside;  // trials that ran then
  struct Neighbour {
    std::string trial;    // its id; of an earlier experiment its folder and id
    double distance = 0;  // in the encoded space: 1 from bound to bound of one parameter
    bool named = false;   // by the model, as one that it went by
    // Of several objectives `numbers` has the value of each, NaN where it is not finite.
    std::optional<ValueAt> then;  // its newest value when the model named it
    std::optional<ValueAt> newest;
    bool is_earlier = false;  // of an experiment that this one began with; the model names none
  };
  // Of the trials before it those that are nearest, and those that the model named; the nearest
  // first.
  std::vector<Neighbour> neighbours;

  // ---- How it stood
  struct Step {
    std::uint64_t iteration = 0;
    std::string verdict;  // "go_on", "pause", "stop" or "replace"
    std::string reason;   // empty for "go_on"
    struct Rung {
      double milestone = 0;
      std::optional<double> value;  // nothing: it was not finite
      std::optional<double> cut_off;
      std::uint64_t rank = 0;
      std::uint64_t of = 0;
    };
    std::optional<Rung> rung;
  };
  std::vector<Step> steps;

  // Orders and notes of users, in order.
  struct Order {
    std::string order;  // "stop", "pause", "unpause", "retry", "add" or "note"
    std::uint64_t iteration = 0;
    std::string user;
    std::string text;  // the reason, or the note
  };
  std::vector<Order> orders;

  // By several objectives, or under constraints.
  std::optional<MeritStanding> standing;

  // ---- Why it ended, in words
  std::string end;
};

// Throws as Analysis, and Error (kBadInput) when there is no such trial.
Explanation explain(const Analysis& analysis, const std::string& trial);
Value to_value(const Explanation& explanation);

}  // namespace tune
