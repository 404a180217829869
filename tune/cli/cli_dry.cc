#include "tune/cli/cli_dry.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/command_words.h"
#include "core/ids.h"
#include "core/random.h"
#include "core/strings.h"
#include "tune/results/warm_start.h"
#include "tune/spec/command_options.h"
#include "tune/spec/experiment_identity.h"
#include "tune/spec/searcher_setup.h"

namespace tune {

namespace {

constexpr std::uint64_t kShown = 5;

// The values that a run would fill in; one that only the run decides stands as its name.
WordFacts facts_of(const ExperimentSpec& spec, TrialNumber number) {
  WordFacts facts;
  facts.program = spec.command.program;
  facts.seed = RandomStream(*spec.options.seed, "trial", number.value).next();
  facts.trial_id = "<trial_id>";
  facts.trial_directory = "<trial_dir>";
  if (spec.name_given) {
    facts.trial_id = trial_id(experiment_id_of(spec), number);
    const auto storage = std::filesystem::absolute(spec.options.storage).lexically_normal();
    facts.trial_directory = storage / spec.name / facts.trial_id;
  }
  facts.config_file = facts.trial_directory + "/config.json";
  return facts;
}

std::string command_line(const ExperimentSpec& spec, const Config& config, TrialNumber number) {
  std::vector<std::string> words =
      filled_words(spec.command.words, config, facts_of(spec, number));
  for (std::string& word : words) word = shell_word(word);
  return join(words, " ");
}

}  // namespace

std::unique_ptr<Searcher> searcher_of(const ExperimentSpec& spec) {
  auto searcher = spec.options.searcher.make();
  searcher->configure(searcher_setup(spec, objective_of(spec)));
  return searcher;
}

int dry_run(ExperimentSpec spec) {
  const bool drawn = !spec.options.seed;
  if (drawn) spec.options.seed = std::random_device()();
  for (const std::string& remark : remarks_on(spec)) fmt::print(stderr, "{}\n", remark);
  const std::string learnt = read_warm_start(spec);
  if (!learnt.empty()) fmt::print(stderr, "{}\n", learnt);
  const auto searcher = searcher_of(spec);
  const auto total = searcher->total();
  if (drawn) fmt::print(stderr, "seed: {} (drawn: a run draws another)\n", *spec.options.seed);
  std::uint64_t shown = 0;
  for (; shown < std::min(kShown, total.value_or(kShown)); ++shown) {
    const TrialNumber number{static_cast<std::uint32_t>(shown)};
    const auto config = suggest_now(*searcher, number);
    if (!config) break;
    fmt::print("{}\n", spec.command.is_given() ? command_line(spec, *config, number)
                                               : config->dump());
  }
  fmt::print(stderr, "{} of {}; nothing was run\n", shown,
             total ? fmt::format("{} trials", *total) : "trials without end");
  return 0;
}

}  // namespace tune
