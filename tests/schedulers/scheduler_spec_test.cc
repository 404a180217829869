#include "schedulers/scheduler_spec.h"

#include <string>

#include <doctest/doctest.h>

#include "core/error.h"
#include "core/refusal.h"
#include "schedulers/asha.h"

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
  for (const char* name : {"", "Scheduler", "HyperBand", "asha1", "pbt"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(scheduler_from_config(name, {}), Error);
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
  // What experiment.json records makes the same scheduler again.
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
  // What experiment.json records makes the same scheduler again.
  CHECK(scheduler_from_config("asha", spec.parameters()).parameters() == spec.parameters());
  CHECK_FALSE(spec.parameters().contains("rule"));
  CHECK(scheduler_from_config("asha", {{"type", "stop"}}).parameters() == asha().parameters());
  CHECK_FALSE(asha().make()->pauses());
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
      {"asha", {{"min_rung_sze", 1}}, "did you mean 'min_rung_size'?"},
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
