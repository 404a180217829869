// Surrogate tasks made of a network and its text files.
#include <doctest/doctest.h>

#include <cmath>

#include "core/json.h"
#include "core/refusal.h"
#include "tune/search/searcher.h"
#include "tune/simulate/r_param_set.h"
#include "tune/simulate/said.h"
#include "tune/simulate/surrogate_task.h"

namespace tune {
namespace {

using testing::refusal;

SurrogateTexts texts_of(const std::string& folder) {
  return {read_file(data() / folder / "config_space.json"),
          read_file(data() / folder / "param_set.R"), read_file(data() / folder / "encoding.json"),
          folder};
}

std::vector<std::unique_ptr<Task>> tasks_from(const std::string& folder) {
  return tasks_of(std::make_shared<Surrogate>(folder, SurrogateSpace(texts_of(folder)),
                                              network_in(data() / folder)));
}

void replace(std::string& text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  text.replace(at, what.size(), by);
}

const Config kConfig = {{"batch_size", 100}, {"learning_rate", 0.01}, {"momentum", 0.5}};

TEST_CASE("a surrogate's tasks, parameters and metrics are those of its files") {
  const auto tasks = tasks_from("tiny_curves");
  REQUIRE(tasks.size() == 2);  // two of four have a code
  CHECK(tasks[0]->name() == "tiny_curves/12");
  CHECK(tasks[1]->name() == "tiny_curves/14");
  CHECK(tasks[0]->space().describe().dump() ==
        R"({"batch_size":{"lograndint":[16,513]},"learning_rate":{"loguniform":[1e-04,0.1]},)"
        R"("momentum":{"uniform":[0.1,0.99]}})");
  CHECK(tasks[0]->steps() == 9);  // epochs 2 to 10
  REQUIRE(tasks[0]->metrics().size() == 3);
  CHECK(tasks[0]->metrics()[0].name == "time");
  CHECK(tasks[0]->metrics()[1].name == "val_accuracy");
  CHECK(tasks[0]->metrics()[1].mode == Mode::kMax);
  CHECK(tasks[0]->metrics()[2].mode == Mode::kMin);
  CHECK_HAS(refusal([&] { find_metric(*tasks[0], "loss"); }),
            "tiny_curves/12 has no metric 'loss': it has time, val_accuracy, val_cross_entropy");
}

TEST_CASE("a curve is what the network says of epochs 2 to the last, at the pace of the last") {
  const auto tasks = tasks_from("tiny_curves");
  Task::Given given;
  const auto curve = tasks[1]->begin(kConfig, given);
  REQUIRE(curve->length() == 9);
  std::vector<float> rows;
  for (int epoch = 2; epoch <= 10; ++epoch) {
    for (const double value : {double(epoch), 100.0, 0.01, 0.5}) {
      rows.push_back(static_cast<float>(value));
    }
  }
  const auto said = network_in(data() / "tiny_curves").run(std::vector<std::int32_t>(9, 3), rows);
  for (std::uint64_t step = 1; step <= 9; ++step) {
    for (std::size_t metric = 0; metric < 3; ++metric) {
      CHECK(curve->values(step)[metric] == said[(step - 1) * 3 + metric]);
    }
    CHECK(curve->seconds(step) == doctest::Approx(said[8 * 3] / 9));
  }
  CHECK(curve->is_whole());
}

TEST_CASE("a bound of the space is of the space, however it was rounded") {
  const auto tasks = tasks_from("tiny_curves");
  Task::Given given;
  Config config = kConfig;
  const auto at = [&](double momentum) {
    config.set("momentum", momentum);
    return tasks[0]->begin(config, given)->values(9)[1];
  };
  CHECK(at(0.1 * (1 - 1e-15)) == at(0.1));
  CHECK(at(0.99 * (1 + 1e-15)) == at(0.99));
  CHECK_HAS(refusal([&] { at(0.0999); }), "momentum: 0.0999 is not from 0.1 to 0.99");
}

TEST_CASE("a parameter that is not active counts for nothing") {
  const auto tasks = tasks_from("tiny_conditional");
  Task::Given given;
  const auto loss = [&](Config config) {
    config.set("nrounds", 50);
    const auto curve = tasks[0]->begin(config, given);
    REQUIRE(curve->length() == 1);
    return curve->values(1)[1];
  };
  const double linear = loss({{"booster", "gblinear"}});
  CHECK(loss({{"booster", "gblinear"}, {"eta", 0.5}, {"max_depth", 3}}) == linear);
  const double tree = loss({{"booster", "gbtree"}, {"eta", 0.5}, {"max_depth", 3}});
  CHECK(tree != linear);
  CHECK(loss({{"booster", "gbtree"}, {"eta", 0.01}, {"max_depth", 3}}) != tree);
  CHECK_HAS(refusal([&] { loss({{"booster", "gbtree"}, {"eta", 0.5}}); }), "max_depth");
  CHECK_HAS(refusal([&] {
              loss({{"booster", "gbtree"}, {"eta", 5}, {"max_depth", 3}});
            }),
            "tiny_conditional: eta: 5 is not from 0.001 to 1");
  REQUIRE(tasks[0]->conditions().size() == 2);
  CHECK(tasks[0]->conditions()[0].parameter == "eta");
  CHECK(tasks[0]->conditions()[0].values == std::vector<std::string>{"gbtree"});
}

TEST_CASE(
    "parameters that depend on another are in its options, and stand there in a configuration") {
  const auto tasks = tasks_from("tiny_conditional");
  const SearchSpace& space = tasks[0]->space();
  CHECK(space.describe().at("booster").dump() ==
        R"({"choice":[{"name":"gblinear"},{"name":"gbtree","eta":{"loguniform":[0.001,1.0]},)"
        R"("max_depth":{"randint":[1,16]}}]})");
  CHECK(space.find("eta") == nullptr);
  CHECK(tasks[0]->flat_space().find("eta") != nullptr);
  Task::Given given;
  const auto loss = [&](const Config& config) {
    return tasks[0]->begin(config, given)->values(1)[1];
  };
  CHECK(
      loss({{"nrounds", 50}, {"booster", {{"name", "gbtree"}, {"eta", 0.5}, {"max_depth", 3}}}}) ==
      loss({{"nrounds", 50}, {"booster", "gbtree"}, {"eta", 0.5}, {"max_depth", 3}}));
  CHECK(loss({{"nrounds", 50}, {"booster", {{"name", "gblinear"}}}}) ==
        loss({{"nrounds", 50}, {"booster", "gblinear"}}));
  // All that the space draws is answered.
  auto searcher = basic_variant().make();
  searcher->configure({space, 50, {}, {"", Mode::kMax, 1}});
  for (std::uint32_t i = 0; i < 50; ++i) {
    const Config config = *searcher->suggest({i});
    CAPTURE(config.dump());
    CHECK(std::isfinite(loss(config)));
  }
}

TEST_CASE("a sweep may search some of the options, and what is in them as far as the task has it") {
  const auto tasks = tasks_from("tiny_conditional");
  const auto why = [&](SearchSpace booster) {
    std::string all;
    for (const auto& [path, message] :
         misfits({{"nrounds", 50}, {"booster", std::move(booster)}}, *tasks[0])) {
      all += path + ": " + message + "\n";
    }
    return all;
  };
  const SearchSpace linear = {{"name", "gblinear"}};
  CHECK(why(linear) == "");
  CHECK(why(choice({linear, {{"name", "gbtree"}, {"eta", uniform(0.1, 0.5)}, {"max_depth", 3}}})) ==
        "");
  CHECK_HAS(why(choice({linear, {{"name", "gbtree"}, {"eta", uniform(0.1, 5)}, {"max_depth", 3}}})),
            "booster/eta: 5.0 is not within the task's 0.001 to 1\n");
  CHECK_HAS(why({{"name", "gbtree"}, {"eta", 0.1}}), "booster/max_depth: is missing");
  CHECK_HAS(why(choice({{{"name", "gblinear"}, {"eta", uniform(0.1, 0.5)}}})),
            "booster/eta: tiny_conditional/3 has no parameter of that name");
  CHECK_HAS(why(choice({linear, {{"name", "dart"}, {"eta", uniform(0, 1)}}})),
            "is not one of the task's options {\"choice\":[{\"name\":\"gblinear\"}");
}

TEST_CASE("conditions that lead in a circle are refused") {
  SurrogateTexts texts = texts_of("tiny_conditional");
  Value space = parse_json(texts.config_space, "test");
  Value::List conditions = space.at("conditions").list();
  conditions.push_back(
      {{"child", "booster"}, {"parent", "booster"}, {"type", "EQ"}, {"value", "gbtree"}});
  space.set("conditions", Value::make_list(std::move(conditions)));
  texts.config_space = to_json(space);
  CHECK_HAS(refusal([&] { SurrogateSpace circle(texts); }),
            "tiny_conditional/config_space.json: booster depends on itself");
}

TEST_CASE("ends are those of the curves") {
  const auto tasks = tasks_from("tiny_curves");
  Config other = kConfig;
  other.set("momentum", 0.9);
  const auto ends = tasks[0]->ends({kConfig, other}, 1);
  REQUIRE(ends.size() == 2);
  for (const auto& [config, end] : {std::pair(kConfig, ends[0]), std::pair(other, ends[1])}) {
    Task::Given given;
    const auto curve = tasks[0]->begin(config, given);
    CHECK(end.value == curve->values(9)[1]);
    CHECK(end.seconds == doctest::Approx(9 * curve->seconds(1)));
  }
  CHECK(ends[0].value != ends[1].value);
}

TEST_CASE("the reference is the same each time, and better than what chance finds") {
  const auto tasks = tasks_from("tiny_curves");
  const std::string metric = tasks[0]->metrics()[2].name;
  const Reference reference = tasks[0]->reference({metric, Mode::kMin});
  CHECK(reference.optimum < reference.median);
  CHECK(reference.training_s > 0);
  CHECK(tasks[0]->reference({metric, Mode::kMin}).optimum == reference.optimum);
  CHECK(tasks[0]->reference({metric, Mode::kMax}).optimum > reference.median);
  CHECK(reference.regret(reference.optimum) == 0);
  CHECK(reference.regret(reference.median) == 1);
  Task::Given given;
  for (std::uint64_t i = 0; i < 200; ++i) {
    Config config;
    for (const auto& [path, domain] : tasks[0]->space().domains()) {
      RandomStream random(1, path, i);
      config.set(path, domain->draw(random));
    }
    CHECK(tasks[0]->begin(config, given)->values(9)[2] >= reference.optimum);
  }
}

TEST_CASE("the reference under constraints is of configurations that keep them") {
  const auto tasks = tasks_from("tiny_curves");
  const std::string metric = tasks[0]->metrics()[0].name;
  const std::string other = tasks[0]->metrics()[1].name;
  const double median = tasks[0]->reference({other, Mode::kMin}).median;
  const auto reference = [&](double most) {
    return tasks[0]->reference({metric, Mode::kMax, 0, {}, {{.metric = other, .max = most}}});
  };
  const Reference free = tasks[0]->reference({metric, Mode::kMax});
  CHECK(reference(1e9).optimum == free.optimum);
  CHECK(reference(1e9).median == free.median);
  CHECK(reference(median).median != free.median);
  CHECK(reference(median).training_s == free.training_s);
  CHECK_HAS(refusal([&] { reference(-1e9); }, ErrorCode::kBadInput), "keeps the constraints");
}

TEST_CASE("a space fits when it asks for what the task can answer") {
  const auto tasks = tasks_from("tiny_curves");
  const auto complaints = [&](SearchSpace space) {
    std::string all;
    for (const auto& [path, message] : misfits(space, *tasks[0]))
      all += path + ": " + message + "\n";
    return all;
  };
  CHECK(complaints(tasks[0]->space()).empty());
  CHECK(complaints({{"batch_size", choice({16, 512})},
                    {"learning_rate", loguniform(0.001, 0.01)},
                    {"momentum", 0.9},
                    {"verbose", true}})
            .empty());
  const std::string found = complaints(
      {{"batch_size", randint(16, 1000)}, {"learning_rate", 1}, {"dropout", uniform(0, 1)}});
  CHECK_HAS(found, "batch_size: 999.0 is not within the task's 16 to 512\n");
  CHECK_HAS(found, "learning_rate: 1 is not within the task's 0.0001 to 0.1\n");
  CHECK_HAS(found, "dropout: tiny_curves/12 has no parameter of that name\n");
  CHECK_HAS(found, "momentum: is missing: tiny_curves/12 has it as {\"uniform\":[0.1,0.99]}\n");
  const auto booster = [&](SearchSpace node) {
    const auto conditional = tasks_from("tiny_conditional");
    SearchSpace space = conditional[0]->flat_space();
    space.set("booster", std::move(node));
    const auto found_there = misfits(space, *conditional[0]);
    return found_there.empty() ? "" : found_there.front().message;
  };
  // The rounding of a bound, as of YAHPO Gym's 0.00010000000000000009.
  CHECK(complaints({{"batch_size", 16},
                    {"learning_rate", uniform(0.0001 * (1 - 1e-15), 0.1 * (1 + 1e-15))},
                    {"momentum", 0.9}})
            .empty());
  CHECK_HAS(complaints({{"batch_size", 16}, {"learning_rate", 0.0000999}, {"momentum", 0.9}}),
            "learning_rate: ");
  CHECK(booster(choice({"gbtree"})).empty());
  CHECK_HAS(booster(choice({"gbtree", "dart"})),
            "\"dart\" is not one of the task's [\"gblinear\",\"gbtree\"]");
}

TEST_CASE("files that do not fit each other are refused and named") {
  const auto why = [](const std::function<void(SurrogateTexts&)>& change) {
    return refusal([&] {
      SurrogateTexts texts = texts_of("tiny_curves");
      change(texts);
      Surrogate("tiny_curves", SurrogateSpace(texts), network_in(data() / "tiny_curves"));
    });
  };
  CHECK_HAS(why([](SurrogateTexts& t) { t.config_space = "{"; }), "tiny_curves/config_space.json");
  CHECK_HAS(why([](SurrogateTexts& t) { t.config_space = "{}"; }), "hyperparameters");
  CHECK_HAS(why([](SurrogateTexts& t) { replace(t.config_space, "uniform_float", "normal"); }),
            "learning_rate: the type 'normal' is none of categorical");
  CHECK_HAS(why([](SurrogateTexts& t) { replace(t.config_space, "0.99", "0.01"); }),
            "momentum: 0.1 to 0.01 is not a range");
  CHECK_HAS(why([](SurrogateTexts& t) { replace(t.param_set, "codomain", "range"); }),
            "tiny_curves/param_set.R: there is no codomain = ps(...)");
  CHECK_HAS(why([](SurrogateTexts& t) { replace(t.param_set, "momentum", "velocity"); }),
            "velocity is not in config_space.json");
  CHECK_HAS(why([](SurrogateTexts& t) { replace(t.param_set, "\"task_id\"", "\"task\""); }),
            "no parameter has the tag task_id");
  CHECK_HAS(why([](SurrogateTexts& t) { replace(t.encoding, "\"14\": 3", "\"14\": 5"); }),
            "the code 5 of OpenML_task_id '14' is not one of its 5");
  CHECK_HAS(why([](SurrogateTexts& t) { t.encoding = R"({"OpenML_task_id":{"#na#":0}})"; }),
            "it names no task");
  CHECK_HAS(why([](SurrogateTexts& t) { replace(t.encoding, "OpenML_task_id", "task"); }),
            "tiny_curves/encoding.json");
  CHECK_HAS(why([](SurrogateTexts& t) {
              replace(t.param_set,
                      "val_accuracy = p_dbl(lower = 0, upper = 100, tags = \"maximize\"),", "");
            }),
            "it has 3 outputs, param_set.R 2");
}

TEST_CASE("parameter sets are read with quotes, parentheses and lines as they come") {
  const auto set = read_param_set(
      "x = 1\nmy_set = ps(a = p_int(1))\nset = ps(\n  `a.b` = p_fct(levels = "
      "c(\"x, (y\", 'z')), c=p_dbl(lower = log(2),\n tags = \"budget\"))",
      "set", "r");
  REQUIRE(set.size() == 2);
  CHECK(set[0].name == "a.b");
  CHECK(set[0].kind == "p_fct");
  CHECK_FALSE(set[0].has_tag("budget"));
  CHECK(set[1].name == "c");
  CHECK(set[1].has_tag("budget"));
  CHECK_HAS(refusal([] { read_param_set("set = ps(a = p_int(1)", "set", "r"); }), "set has no end");
  CHECK_HAS(refusal([] { read_param_set("set = ps(a)", "set", "r"); }), "'a' is not a parameter");
}

}  // namespace
}  // namespace tune
