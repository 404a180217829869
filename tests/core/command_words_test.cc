#include "core/command_words.h"

#include <doctest/doctest.h>

#include "core/refusal.h"

namespace tune {
namespace {

using testing::refusal;
using Words = std::vector<std::string>;

const Config kConfig = {{"lr", 0.001},
                        {"model", {{"layers", 2}, {"act", "re lu"}}},
                        {"nesterov", true},
                        {"amp", false},
                        {"none", nullptr},
                        {"sizes", list({1, 2})}};

WordFacts facts() {
  WordFacts facts;
  facts.program = "train.py";
  facts.trial_id = "ab_00001";
  facts.trial_directory = "/r/ab_00001";
  facts.config_file = "/r/ab_00001/config.json";
  facts.seed = 18446744073709551615u;
  return facts;
}

TEST_CASE("placeholders become words, whatever is in their values") {
  const struct {
    Words words;
    Words filled;
  } cases[] = {
      {{"./train", "--lr", "${lr}"}, {"./train", "--lr", "0.001"}},
      {{"--lr=${lr},${lr}"}, {"--lr=0.001,0.001"}},
      {{"${model/layers}", "${model/act}"}, {"2", "re lu"}},
      {{"${model}", "${sizes}", "${none}"}, {R"({"layers":2,"act":"re lu"})", "[1,2]", "null"}},
      {{"${nesterov}", "${amp}"}, {"true", "false"}},
      {{"${seed}", "${trial_id}", "${trial_dir}/x"},
       {"18446744073709551615", "ab_00001", "/r/ab_00001/x"}},
      {{"--resume=${checkpoint}", "${checkpoint}"}, {"--resume=", ""}},
      {{"${env}", "${interpreter}", "${program}"}, {"/usr/bin/env", "python3", "train.py"}},
      {{"$${lr}", "$lr", "${lr}$", "a}b"}, {"${lr}", "$lr", "0.001$", "a}b"}},
      {{""}, {""}},
  };
  for (const auto& one : cases) {
    CAPTURE(one.words[0]);
    CHECK(filled_words(one.words, kConfig, facts()) == one.filled);
  }
}

TEST_CASE("${args} are the arguments that W&B's agent gives") {
  CHECK(filled_words({"p", "${args}", "end"}, kConfig, {}) ==
        Words{"p", "--lr=0.001", "--model.layers=2", "--model.act=re lu", "--nesterov=True",
              "--amp=False", "--none=None", "--sizes=[1,2]", "end"});
  const Config small = {{"lr", 1.0}, {"a", true}, {"b", false}};
  CHECK(filled_words({"${args_no_hyphens}"}, small, {}) == Words{"lr=1.0", "a=True", "b=False"});
  CHECK(filled_words({"${args_no_boolean_flags}"}, small, {}) == Words{"--lr=1.0", "--a"});
  CHECK(filled_words({"${args_json}"}, small, {}) == Words{R"({"lr":1.0,"a":true,"b":false})"});
  CHECK(filled_words({"p", "${args}"}, Config(), {}) == Words{"p"});
}

TEST_CASE("a parameter goes before a fact of its name") {
  const Config config = {{"seed", 7}, {"args", "x y"}};
  CHECK(filled_words({"${seed}", "${args}", "-${args}"}, config, facts()) ==
        Words{"7", "x y", "-x y"});
  CHECK(check_words({"-${args}"}, {"args"}, false).empty());
}

TEST_CASE("a configuration that lacks a parameter is refused by its word") {
  const std::string error =
      refusal([] { filled_words({"p", "${momentum}"}, Config{{"lr", 1}}, {}); });
  CHECK_HAS(error, "command/1: this configuration has no momentum");
  const Config zero = {{"x", std::string("a\0b", 3)}};
  CHECK_HAS(refusal([&] { filled_words({"${x}"}, zero, {}); }), "command/0: the word holds a zero");
}

TEST_CASE("words are checked against the parameters") {
  const Words parameters = {"lr", "model/layers"};
  const auto wrong = [&](const Words& words, bool has_program = false) {
    std::string text;
    for (const WordComplaint& one : check_words(words, parameters, has_program)) {
      text += std::to_string(one.word) + ": " + one.message + "\n";
    }
    return text;
  };
  CHECK(wrong({"p", "${lr}", "${model/layers}", "${model}", "${args}", "${seed}", "$${x}"}).empty());
  CHECK_HAS(wrong({"p", "${model/layer}"}), "1: ${model/layer} is neither a parameter");
  CHECK_HAS(wrong({"p", "${model/layer}"}), "did you mean 'model/layers'?");
  CHECK_HAS(wrong({"${zzzzzzzz}"}), "there are: lr, model/layers, args");
  CHECK_HAS(wrong({"${trialid}"}), "did you mean 'trial_id'?");
  CHECK_HAS(wrong({"${lr"}), "0: '${lr' has a ${ without its }");
  CHECK_HAS(wrong({"--x=${args}"}), "make it a word of its own");
  CHECK_HAS(wrong({"${program}"}), "needs the key program");
  CHECK(wrong({"${program}"}, true).empty());
  CHECK_HAS(wrong({"${}"}), "0: ${} is neither");
}

TEST_CASE("placeholders of parameters are told with their words") {
  std::string found;
  for (const auto& [word, name] :
       parameters_in({"p", "${lr}-${seed}-$${lr}", "${model}${lr}"}, {"lr", "model/layers"})) {
    found += std::to_string(word) + name + " ";
  }
  CHECK(found == "1lr 2model 2lr ");
}

TEST_CASE("braces without a $ around what a placeholder could name are a likely slip") {
  const Words parameters = {"lr", "model/layers"};
  const auto told = [&](const std::string& word) {
    const auto found = lookalikes({"p", word}, parameters);
    if (found.empty()) return std::string();
    CHECK(found.size() == 1);
    CHECK(found[0].word == 1);
    return found[0].message;
  };
  CHECK(told("--lr={lr}") == "{lr} is passed on as it is; the value is ${lr}");
  CHECK_HAS(told("${lr}{}{x}{model/layers}"), "the value is ${model/layers}");
  CHECK_HAS(told("{seed}"), "${seed}");
  for (const char* word : {"${lr}", "$${lr}", "{}", "{x}", "{lr", "lr}", "{ lr }", "awk '{print}'"}) {
    CAPTURE(word);
    CHECK(told(word).empty());
  }
}

TEST_CASE("every parameter is a variable") {
  const auto variables = parameter_variables(kConfig);
  CHECK(variables.at("TUNE_PARAM_lr") == "0.001");
  CHECK(variables.at("TUNE_PARAM_model_layers") == "2");
  CHECK(variables.at("TUNE_PARAM_model_act") == "re lu");
  CHECK(variables.at("TUNE_PARAM_sizes") == "[1,2]");
  CHECK(variables.size() == kConfig.leaves().size());
  CHECK(parameter_variable("a/b") == parameter_variable("a-b"));
  CHECK(parameter_variables({{"a_b", 1}, {"a", {{"b", 2}}}}).at("TUNE_PARAM_a_b") == "2");
}

}  // namespace
}  // namespace tune
