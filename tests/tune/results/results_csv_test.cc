// results.csv: one row a trial.
#include "tune/results/results_csv.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/refusal.h"
#include "tune/results/analysis.h"
#include "tune/results/csv.h"
#include "tune/story.h"

namespace tune {
namespace {

TEST_CASE("rows of CSV are read as RFC 4180 has them") {
  struct Case {
    const char* text;
    std::vector<std::vector<std::string>> rows;
  };
  const Case cases[] = {
      {"", {}},
      {"a,b\n1,2\n", {{"a", "b"}, {"1", "2"}}},
      {"a,b\r\n,\r\n", {{"a", "b"}, {"", ""}}},
      {"\"a,b\",\"say \"\"hi\"\"\"\n", {{"a,b", "say \"hi\""}}},
      {"\"two\nlines\r\n\",x", {{"two\nlines\r\n", "x"}}},
      {"\"\",\"\"\"\"\n", {{"", "\""}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    std::string_view text = c.text;
    std::vector<std::vector<std::string>> rows;
    for (std::vector<std::string> row; next_csv_row(text, row);) rows.push_back(row);
    CHECK(rows == c.rows);
  }
}

ResultsTable::Make from_line(std::string line) {
  return [line = std::move(line)](ResultText& text) {
    ResultsTable::read_line(text, line, "a test");
  };
}

TEST_CASE("columns are trial fields, metrics in the order first seen, then the configuration") {
  ResultsTable table;
  table.add("x_00000", TrialStatus::kTerminated,
            from_line(R"({"acc":0.5,"training_iteration":2,"done":true,"trial_id":"x_00000"})"),
            pack(Config{{"lr", 0.1}, {"act", nullptr}}));
  table.add("x_00001", TrialStatus::kPending, from_line(""), pack(Config{{"lr", 1}}));
  table.add("x_00002", TrialStatus::kError,
            from_line(R"({"note":"a,b","acc":null,"training_iteration":1,"done":false})"),
            pack(Config{{"lr", 0.2}, {"model", {{"act", "relu"}}}}));
  CHECK(table.to_csv() ==
        "trial_id,status,training_iteration,done,acc,note,config/lr,config/act,config/model/act\n"
        "x_00000,TERMINATED,2,true,0.5,,0.1,,\n"
        "x_00001,PENDING,,,,,1,,\n"
        "x_00002,ERROR,1,false,nan,\"a,b\",0.2,,relu\n");
}

TEST_CASE("what options hold has columns of its own, and a name for its trial") {
  ExperimentSpec spec;
  spec.options.config = {
      {"lr", uniform(0, 1)},
      {"opt",
       choice({{{"kind", "sgd"}, {"momentum", uniform(0, 1)}}, {{"kind", "adam"}}, "none"})}};
  const Config configs[] = {{{"lr", 0.5}, {"opt", "none"}},
                            {{"lr", 0.5}, {"opt", {{"kind", "sgd"}, {"momentum", 0.25}}}},
                            {{"lr", 0.5}, {"opt", {{"kind", "adam"}}}}};
  const ExperimentTags tags(spec);
  CHECK(tags.of({0}, pack(configs[0])) == "0_lr=0.5,opt=none");
  CHECK(tags.of({1}, pack(configs[1])) == "1_lr=0.5,opt/kind=sgd,opt/momentum=0.25");
  CHECK(tags.of({2}, pack(configs[2])) == "2_lr=0.5,opt/kind=adam");
  ResultsTable table;
  for (const Config& config : configs) {
    table.add("x", TrialStatus::kPending, from_line(""), pack(config));
  }
  const std::string csv = table.to_csv();
  CHECK(csv.substr(csv.find("config/")) ==
        "config/lr,config/opt,config/opt/kind,config/opt/momentum\n"
        "x,PENDING,0.5,none,,\nx,PENDING,0.5,,sgd,0.25\nx,PENDING,0.5,,adam,\n");
}

TEST_CASE("an experiment without a result has its trials in the table") {
  ResultsTable table;
  CHECK(ResultsTable().to_csv() == "trial_id,status\n");
  table.add("x_00000", TrialStatus::kPending, from_line(""), pack(Config{}));
  CHECK(table.to_csv() == "trial_id,status\nx_00000,PENDING\n");
}

TEST_CASE("the table at the end and the one made from the folder are the same") {
  Story story;
  Trial& first = story.add();
  story.report(first, {{"acc", 0.25}, {"text", "käse, \"x\"\n"}});
  story.report(first, {{"acc", 0.5}, {"loss", {{"test", std::numeric_limits<double>::infinity()}}}},
               true);
  Trial& second = story.add({{"lr", 1e-5}, {"model", {{"act", "tanh"}}}});
  story.report(second, {{"acc", std::numeric_limits<double>::quiet_NaN()}});
  story.fail(second, "no luck", false);
  story.set_status(story.add(), TrialStatus::kPaused);
  story.flush();
  story.write_spec();
  const std::filesystem::path file = story.path() / "results.csv";
  write_results_csv(file, story.spec(), story.trials(), story.last_results());
  const std::string text = testing::read_text(file);
  CHECK(split_lines(text).at(0) ==
        "trial_id,status,training_iteration,done,experiment_tag,time_this_iter_s,time_total_s,"
        "time_since_restore,iterations_since_restore,timestamp,date,hostname,node_ip,pid,acc,"
        "loss/test,config/lr,config/model/act,config/batch");
  CHECK(split_lines(text).size() == 4);
  CHECK_HAS(split_lines(text).at(3), ",PAUSED,");
  const Analysis analysis = Analysis::load(story.path());
  CHECK(analysis.to_csv() == text);
  analysis.write_csv(story.path() / "copy.csv");
  CHECK(testing::read_text(story.path() / "copy.csv") == text);
}

// Every kind of value, in orders that differ, with keys that are fields, too.
void tell_of_many(Story& story) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Trial& first = story.add();
  story.report(first, {{"b", 1}, {"a", 2.5}});
  story.report(first, {{"a", 2.0}, {"b", -0.0}, {"late", {{"x", "say \"hi\", you\r\n"}}}});
  Trial& second = story.add({{"lr", 1e300}, {"model", {{"act", "käse, \xff"}}}, {"batch", 64}});
  story.timesteps = 128.5;
  story.report(second, {{"trial_id", "mine"}, {"done", 7}, {"date", {{"day", 1}}}, {"pid", true}});
  story.report(second, {{"trial_id", {{"x", 1}}},
                        {"date", "never"},
                        {"list", list({1, 2.0, "x,\xff", -kInfinity, Value{{"k", nullptr}}})},
                        {"none", nullptr},
                        {"empty", Value::make_map()},
                        {"a", kInfinity}},
               true);
  story.timesteps.reset();
  Trial& third = story.add({{"lr", nullptr}});
  story.report(third, {{"a", std::numeric_limits<double>::quiet_NaN()}});
  story.report(third, {{"a", 3}});
  story.cut(third, 1);
  third.last->result = pack(Result{{"a", std::numeric_limits<double>::quiet_NaN()}});
  Trial& damaged = story.add();
  story.report_packed(damaged, {"\x81\xa1"});
  Trial& large = story.add();
  story.report(large, {{"text", std::string(5000, 'x')}, {"a", 1}, {"\xe2\x82\xac", 2}});
  Trial& unreported = story.add();
  story.fail(unreported, "no luck", false);
  story.flush();
}

TEST_CASE("from memory, from a snapshot and from the files: the same table, byte by byte") {
  Story story;
  tell_of_many(story);
  story.write_spec();
  const std::filesystem::path file = story.path() / "results.csv";
  const auto table = [&](LastResults& last) {
    write_results_csv(file, story.spec(), story.trials(), last);
    return testing::read_text(file);
  };
  LastResults nothing;
  const std::string from_files = table(nothing);
  CHECK(split_lines(from_files).size() > 6);
  CHECK(table(story.last_results()) == from_files);
  LastResults restored;
  restored.restore(story.last_results().save().get());
  CHECK(table(restored) == from_files);
  CHECK(Analysis::load(story.path()).to_csv() == from_files);
}

TEST_CASE("what is known of a last result is made from memory, and only that") {
  Story story;
  tell_of_many(story);
  const ExperimentTags tags(story.spec());
  ResultText text;
  std::string known;
  for (const Trial& trial : story.trials()) {
    known += story.last_results().make(text, trial, tags) ? "memory " : "file ";
  }
  // The third was cut, the fifth is large, the sixth has reported nothing.
  CHECK(known == "memory memory file memory file file ");
  for (const Trial& trial : story.trials()) std::filesystem::remove_all(story.directory(trial));
  const std::filesystem::path csv = story.path() / "results.csv";
  write_results_csv(csv, story.spec(), {story.trials()[1]}, story.last_results());
  CHECK_HAS(testing::read_text(csv), ",128.5,");
}

TEST_CASE("a table that cannot be written is an error that names it, and leaves nothing behind") {
  Story story;
  story.add();
  const std::filesystem::path file = story.path() / "results.csv";
  std::filesystem::create_directory(file);
  const auto write = [&] { write_results_csv(file, story.spec(), story.trials(), story.last_results()); };
  CHECK_HAS(testing::refusal(write, ErrorCode::kIo), file.string());
  for (const auto& entry : std::filesystem::directory_iterator(story.path())) {
    CHECK_FALSE(testing::has(entry.path().string(), ".tmp"));
  }
}

}  // namespace
}  // namespace tune
