#include "schedulers/scheduler_spec.h"

#include <string>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/refusal.h"
#include "schedulers/asha.h"
#include "schedulers/hyperband.h"
#include "schedulers/median_stopping.h"

using namespace tune;

TEST_CASE("no scheduler given means fifo") {
  const SchedulerSpec spec;
  CHECK(spec.name() == "fifo");
  CHECK(spec.parameters() == Config());
  CHECK(spec.make()->status_lines() == fifo().make()->status_lines());
  CHECK(scheduler_from_config("fifo", {}).name() == "fifo");
}

TEST_CASE("Ray Tune's names are known") {
  for (const char* name : {"asha", "ASHA", "AsyncHyperBand", "AsyncHyperBandScheduler",
                           "ASHAScheduler", "async_hyperband", "asynchyperband"}) {
    CAPTURE(name);
    CHECK(scheduler_from_config(name, {{"max_t", 9}}).parameters() ==
          asha({.max_t = 9}).parameters());
    CHECK(scheduler_from_config(name, {}).name() == "asha");
  }
  for (const char* name : {"fifo", "FIFO", "FIFOScheduler"}) {
    CAPTURE(name);
    CHECK(scheduler_from_config(name, {}).name() == "fifo");
  }
  for (const char* name : {"", "Scheduler", "HyperBand2", "asha1", "Median", "pbt"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(scheduler_from_config(name, {}), Error);
  }
}

TEST_CASE("Ray Tune's names of hyperband and median stopping are known") {
  for (const char* name : {"hyperband", "HyperBand", "HyperBandScheduler"}) {
    CAPTURE(name);
    CHECK(scheduler_from_config(name, {{"max_t", 9}}).parameters() ==
          hyperband({.max_t = 9}).parameters());
    CHECK(scheduler_from_config(name, {}).name() == "hyperband");
  }
  for (const char* name : {"median_stopping", "MedianStoppingRule", "median_stopping_rule"}) {
    CAPTURE(name);
    CHECK(scheduler_from_config(name, {{"grace_period", 9}}).parameters() ==
          median_stopping({.grace_period = 9}).parameters());
    CHECK(scheduler_from_config(name, {}).name() == "median_stopping");
  }
}

TEST_CASE("every parameter of hyperband and median stopping can be written and comes back") {
  const Config bands{
      {"max_t", 27},      {"grace_period", 2}, {"reduction_factor", 2.5},  {"time_attr", "epoch"},
      {"metric", "loss"}, {"mode", "min"},     {"stop_last_trials", false}};
  const Config medians{{"grace_period", 7},    {"min_samples_required", 9}, {"rule", "best"},
                       {"time_attr", "epoch"}, {"metric", "loss"},          {"mode", "min"}};
  struct Row {
    const char* name;
    const Config& written;
  };
  for (const Row& row : {Row{"hyperband", bands}, Row{"median_stopping", medians}}) {
    CAPTURE(row.name);
    const SchedulerSpec spec = scheduler_from_config(row.name, row.written);
    for (const Member& member : row.written.map()) {
      INFO(member.key);
      const Value& found = spec.parameters().at(member.key);
      if (member.value.is_number()) CHECK(found.number() == member.value.number());
      if (!member.value.is_number()) CHECK(found == member.value);
    }
    CHECK(spec.parameters().map().size() == row.written.map().size());
    CHECK(scheduler_from_config(row.name, spec.parameters()).parameters() == spec.parameters());
    const auto made = spec.make();
    made->configure({"", Mode::kMax, 1});
    CHECK(made->objective().metric == "loss");
    CHECK(made->objective().mode == Mode::kMin);
    CHECK_FALSE(made->max_t().has_value());
    CHECK(made->add_trial({0}).attribute == "epoch");
  }
}

TEST_CASE("every parameter of asha can be written and comes back") {
  const Config written{{"max_t", 27},
                       {"grace_period", 2},
                       {"reduction_factor", 1.5},
                       {"brackets", 2},
                       {"time_attr", "epoch"},
                       {"metric", "loss/valid"},
                       {"mode", "min"},
                       {"stop_last_trials", false},
                       {"rule", "top"},
                       {"min_rung_size", 5},
                       {"type", "stop"}};
  const SchedulerSpec spec = scheduler_from_config("asha", written);
  CHECK(spec.name() == "asha");
  for (const Member& member : written.map()) {
    INFO(member.key);
    const Value& found = spec.parameters().at(member.key);
    if (member.value.is_number()) CHECK(found.number() == member.value.number());
    if (!member.value.is_number()) CHECK(found == member.value);
  }
  // The record in experiment.json makes the same scheduler again.
  CHECK(scheduler_from_config("asha", spec.parameters()).parameters() == spec.parameters());

  const auto made = spec.make();
  made->configure({"", Mode::kMax, 1});
  CHECK(made->objective().metric == "loss/valid");
  CHECK(made->objective().mode == Mode::kMin);
  CHECK_FALSE(made->max_t().has_value());
  CHECK(made->add_trial({0}).attribute == "epoch");
  CHECK(made->status_lines().size() == 3);  // and one line a bracket
}

TEST_CASE("asha by promotion is asked for by type") {
  const SchedulerSpec spec =
      scheduler_from_config("asha", {{"max_t", 9}, {"reduction_factor", 3}, {"type", "promote"}});
  CHECK(spec.parameters() ==
        asha({.max_t = 9, .reduction_factor = 3, .type = AshaType::kPromote}).parameters());
  CHECK(spec.make()->pauses());
  // The record in experiment.json makes the same scheduler again.
  CHECK(scheduler_from_config("asha", spec.parameters()).parameters() == spec.parameters());
  CHECK_FALSE(spec.parameters().contains("rule"));
  CHECK(scheduler_from_config("asha", {{"type", "stop"}}).parameters() == asha().parameters());
  CHECK_FALSE(asha().make()->pauses());

  const SchedulerSpec opening =
      scheduler_from_config("asha", {{"type", "promote"}, {"open_after", 12}});
  CHECK(opening.parameters() == asha({.type = AshaType::kPromote, .open_after = 12}).parameters());
  CHECK(scheduler_from_config("asha", opening.parameters()).parameters() == opening.parameters());
  CHECK(opening.parameters().get<bool>("open_silent"));
  const SchedulerSpec by_number = scheduler_from_config(
      "asha", {{"type", "promote"}, {"open_after", 12}, {"open_silent", false}});
  CHECK_FALSE(by_number.parameters().get<bool>("open_silent"));
  CHECK(scheduler_from_config("asha", by_number.parameters()).parameters() ==
        by_number.parameters());
}

TEST_CASE("parameters left out are those of AshaOptions") {
  CHECK(scheduler_from_config("asha", {}).parameters() == asha().parameters());
  CHECK_FALSE(asha().parameters().contains("metric"));
  CHECK_FALSE(asha().parameters().contains("mode"));
  CHECK(scheduler_from_config("asha", {{"max_t", 9}}).make()->max_t() == 9.0);
}

TEST_CASE("a mistake is refused with what is known") {
  struct Row {
    const char* name;
    Config parameters;
    const char* text;
  };
  const Row table[] = {
      {"ahsa", {}, "there is no scheduler 'ahsa': did you mean 'asha'?"},
      {"hyperband_of_old", {}, "known are: fifo, asha"},
      {"", {}, "known are: fifo, asha"},
      {"fifo", {{"max_t", 3}}, "scheduler fifo: it has no parameters, found 'max_t'"},
      {"asha", {{"max_tt", 3}}, "there is no parameter 'max_tt': did you mean 'max_t'?"},
      {"asha", {{"grace_perid", 3}}, "did you mean 'grace_period'?"},
      {"asha", {{"reduction_facto", 3}}, "did you mean 'reduction_factor'?"},
      {"asha", {{"bracket", 3}}, "did you mean 'brackets'?"},
      {"asha", {{"time_atr", "t"}}, "did you mean 'time_attr'?"},
      {"asha", {{"metrc", "t"}}, "did you mean 'metric'?"},
      {"asha", {{"mod", "max"}}, "did you mean 'mode'?"},
      {"asha", {{"stop_last_trial", true}}, "did you mean 'stop_last_trials'?"},
      {"asha", {{"rulee", "ray"}}, "did you mean 'rule'?"},
      {"asha", {{"typ", "stop"}}, "did you mean 'type'?"},
      {"asha", {{"type", "promotion"}}, "type is 'promotion': it must be stop or promote"},
      {"asha", {{"type", "promote"}, {"rule", "top"}}, "rule is of type stop"},
      {"asha",
       {{"type", "promote"}, {"open_after", -1}},
       "open_after is -1: it must be at least 0"},
      {"asha", {{"open_after", 3}}, "open_after is of type promote"},
      {"asha", {{"type", "promote"}, {"open_silent", true}}, "open_silent is of open_after"},
      {"asha", {{"min_rung_sze", 1}}, "did you mean 'min_rung_size'?"},
      {"hyperband", {{"max_tt", 3}}, "scheduler hyperband: there is no parameter 'max_tt'"},
      {"hyperband", {{"max_t", 0}}, "scheduler hyperband: max_t is 0: it must be above 0"},
      {"hyperband", {{"grace_period", 82}}, "grace_period is 82: it must be above 0 and at most"},
      {"hyperband", {{"reduction_factor", 1.5}}, "reduction_factor is 1.5: it must be at least 2"},
      {"hyperband", {{"max_t", 1e6}}, "a bracket would take more than 1000000 trials"},
      {"hyperband", {{"time_attr", ""}}, "time_attr is empty"},
      {"hyperband", {{"mode", "least"}}, "mode is 'least'"},
      {"median_stopping", {{"hard_stop", false}}, "there is no parameter 'hard_stop'"},
      {"median_stopping", {{"grace_period", 0}}, "grace_period is 0: it must be above 0"},
      {"median_stopping", {{"min_samples_required", 0}}, "it must be at least 1"},
      {"median_stopping", {{"rule", "ray"}}, "rule is 'ray': it must be mean or best"},
      {"median_stopping", {{"time_attr", ""}}, "time_attr is empty"},
      {"hyperban", {}, "did you mean 'hyperband'?"},
      {"asha", {{"perturbation_interval", 1}}, "known are: max_t, grace_period"},
      {"asha", {{"mode", "maximum"}}, "mode is 'maximum': it must be max or min"},
      {"asha", {{"rule", "best"}}, "rule is 'best': it must be ray or top"},
      {"asha", {{"max_t", "many"}}, "max_t"},
      {"asha", {{"brackets", 1.5}}, "brackets"},
      {"asha", {{"stop_last_trials", 1}}, "stop_last_trials"},
      {"asha", {{"mode", 3}}, "mode"},
      {"asha", {{"max_t", 3}, {"grace_period", 4}}, "grace_period is 4"},
  };
  for (const Row& row : table) {
    CAPTURE(row.name);
    CHECK_HAS(testing::refusal([&] { scheduler_from_config(row.name, row.parameters); }), row.text);
  }
}

TEST_CASE("specs are values: copies make schedulers of their own") {
  const SchedulerSpec spec = asha({.max_t = 9, .reduction_factor = 3});
  const SchedulerSpec copy = spec;
  const auto one = spec.make();
  const auto other = copy.make();
  for (const auto* scheduler : {&one, &other}) (*scheduler)->configure({"m", Mode::kMax, 1});
  const std::string fresh = other->save();
  one->add_trial({0});
  CHECK(one->save() != fresh);
  CHECK(other->save() == fresh);
}
