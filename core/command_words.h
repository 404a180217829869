// The words of a command with their placeholders: checked before a sweep, filled in for a trial.
// No shell reads them: a value with spaces or quotes stays one word. Pure.
//
//   ${lr} ${model/layers}   the parameter; text as it is, anything else as JSON
//   ${args}                 one word for each parameter, as W&B's agent has them: --lr=0.1
//                           --model.layers=2 --nesterov=True
//   ${args_no_hyphens}      the same as lr=0.1
//   ${args_no_boolean_flags}  the same, but true is --nesterov and false is nothing
//   ${args_json}            the configuration as one word of JSON
//   ${config_file}          the configuration as a JSON file
//   ${trial_id} ${trial_dir} ${seed}
//   ${checkpoint}           the folder to go on from; empty when the trial begins
//   ${program}              the key `program` of the sweep
//   ${env} ${interpreter}   /usr/bin/env, python3
//   $${                     the two characters ${
//
// A parameter of one of these names goes before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace tune {

// The values of placeholders that are not parameters.
struct WordFacts {
  std::string program;
  std::string trial_id;
  std::string trial_directory;
  std::string config_file;
  std::string checkpoint;
  std::uint64_t seed = 0;
};

struct WordComplaint {
  std::size_t word = 0;
  std::string message;
};
// `parameters`: the key paths that a configuration may have.
std::vector<WordComplaint> check_words(const std::vector<std::string>& words,
                                       const std::vector<std::string>& parameters,
                                       bool has_program);

// The placeholders that stand for parameters, by word.
struct WordParameter {
  std::size_t word = 0;
  std::string name;
};
std::vector<WordParameter> parameters_in(const std::vector<std::string>& words,
                                         const std::vector<std::string>& parameters);

// Words that are passed on as they are and look like a slip: "{lr}" where "${lr}" would be the
// parameter.
std::vector<WordComplaint> lookalikes(const std::vector<std::string>& words,
                                      const std::vector<std::string>& parameters);

// The command line of one trial. Throws Error (kBadInput) "command/3: ..." when the configuration
// does not have a parameter, or a word would hold a zero byte.
std::vector<std::string> filled_words(const std::vector<std::string>& words, const Config& config,
                                      const WordFacts& facts);

// The variable of the environment for a parameter: TUNE_PARAM_model_layers.
std::string parameter_variable(std::string_view path);
// All of them with their values. Of several parameters with one name, the last one.
std::map<std::string, std::string> parameter_variables(const Config& config);

}  // namespace tune
