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

TEST_CASE("columns are trial fields, metrics in the order first seen, then the configuration") {
  ResultsTable table;
  table.add("x_00000", TrialStatus::kTerminated,
            R"({"acc":0.5,"training_iteration":2,"done":true,"trial_id":"x_00000"})",
            pack(Config{{"lr", 0.1}, {"act", nullptr}}));
  table.add("x_00001", TrialStatus::kPending, "", pack(Config{{"lr", 1}}));
  table.add("x_00002", TrialStatus::kError,
            R"({"note":"a,b","acc":null,"training_iteration":1,"done":false})",
            pack(Config{{"lr", 0.2}, {"model", {{"act", "relu"}}}}));
  CHECK(table.to_csv() ==
        "trial_id,status,training_iteration,done,acc,note,config/lr,config/act,config/model/act\n"
        "x_00000,TERMINATED,2,true,0.5,,0.1,,\n"
        "x_00001,PENDING,,,,,1,,\n"
        "x_00002,ERROR,1,false,nan,\"a,b\",0.2,,relu\n");
}

TEST_CASE("an experiment without a result has its trials in the table") {
  ResultsTable table;
  CHECK(ResultsTable().to_csv() == "trial_id,status\n");
  table.add("x_00000", TrialStatus::kPending, "", pack(Config{}));
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
  write_results_csv(file, story.spec(), story.trials());
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

TEST_CASE("a table that cannot be written is an error that names it, and leaves nothing behind") {
  Story story;
  story.add();
  const std::filesystem::path file = story.path() / "results.csv";
  std::filesystem::create_directory(file);
  const auto write = [&] { write_results_csv(file, story.spec(), story.trials()); };
  CHECK_HAS(testing::refusal(write, ErrorCode::kIo), file.string());
  for (const auto& entry : std::filesystem::directory_iterator(story.path())) {
    CHECK_FALSE(testing::has(entry.path().string(), ".tmp"));
  }
}

}  // namespace
}  // namespace tune
