// `tune export --tensorboard`, on folders as a driver writes them. tests/export has TensorBoard
// itself.
#include "tune/export/tensorboard.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "core/refusal.h"
#include "tune/cli/shell.h"
#include "tune/export/hparams.h"
#include "view/folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::add_trial;
using testing::append_text;
using testing::event;
using testing::trial_name;
using testing::write_text;

constexpr const char* kFile = "events.out.tfevents.0000000000.tune";

std::string line(int iteration, const std::string& rest) {
  return R"({)" + rest + R"(,"training_iteration":)" + std::to_string(iteration) +
         R"(,"done":false,"time_total_s":)" + std::to_string(iteration) +
         R"(.5,"timestamp":1795000000,"pid":7})" + "\n";
}

struct Exported {
  Shell shell;
  fs::path folder = shell.path() / "s";

  Exported() { testing::begin_experiment(folder); }
  Ended run(std::vector<const char*> more = {}) const {
    std::vector<const char*> words = {"export", "--tensorboard", "s"};
    words.insert(words.end(), more.begin(), more.end());
    return shell.tune(words);
  }
  std::string bytes(const std::string& trial) const {
    return testing::read_text(folder / "tensorboard" / trial / kFile);
  }
  std::map<std::string, std::string> all_bytes() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder / "tensorboard")) {
      if (entry.is_regular_file()) all[entry.path()] = testing::read_text(entry.path());
    }
    return all;
  }
  // The float of every (iteration, tag) in a trial's file, as it stands there.
  std::map<std::pair<std::uint64_t, std::string>, float> scalars(int trial) const {
    std::map<std::pair<std::uint64_t, std::string>, float> found;
    for_each_record(bytes(trial_name(trial)), [&](std::string_view event) {
      std::uint64_t step = 0;
      ProtoReader fields(event);
      while (const auto field = fields.next()) {
        if (field->number == 2) step = field->value;
        if (field->number != 5) continue;
        ProtoReader values(field->text);
        while (const auto value = values.next()) {
          std::string tag;
          ProtoReader parts(value->text);
          while (const auto part = parts.next()) {
            if (part->number == 1) tag = part->text;
            if (part->number != 2) continue;
            CHECK(found
                      .emplace(std::pair(step, tag),
                               std::bit_cast<float>(static_cast<std::uint32_t>(part->value)))
                      .second);
          }
        }
      }
    });
    return found;
  }
};

TEST_CASE("every number of every result is a scalar of its trial, by iteration") {
  Exported out;
  add_trial(out.folder, 0, R"({"lr":0.1})",
            line(1, R"("loss":0.1,"deep":{"a":-2},"word":"x","flag":true)") +
                line(2, R"("loss":null,"deep":{"a":"inf"})"));
  write_text(out.folder / "events.jsonl",
             event("attempt_started", 0) + event("trial_ended", 0, R"(,"status":"TERMINATED")"));
  REQUIRE(out.run().code == 0);
  auto scalars = out.scalars(0);
  CHECK(scalars.size() == 7);
  CHECK(scalars[{1, "loss"}] == 0.1f);
  CHECK(scalars[{1, "deep/a"}] == -2);
  CHECK(scalars[{1, "flag"}] == 1);
  CHECK(scalars[{1, "time_total_s"}] == 1.5f);
  CHECK(std::isnan(scalars[{2, "loss"}]));
  CHECK(scalars[{2, "deep/a"}] == std::numeric_limits<float>::infinity());
  CHECK(out.bytes(trial_name(0)).find(hparams_end(TrialStatus::kTerminated)) != std::string::npos);
}

TEST_CASE("an export that is run twice writes nothing twice, and goes on with what is new") {
  Exported out;
  add_trial(out.folder, 0, R"({"lr":0.1})", line(1, R"("loss":1)"));
  add_trial(out.folder, 1, R"({"lr":0.2})", line(1, R"("loss":2)"));
  REQUIRE(out.run().code == 0);
  const auto once = out.all_bytes();
  CHECK(once.size() == 3);  // and the columns
  REQUIRE(out.run().code == 0);
  CHECK(out.all_bytes() == once);
  append_text(out.folder / trial_name(1) / "result.json", line(2, R"("loss":1,"new":3)"));
  REQUIRE(out.run().code == 0);
  CHECK(out.scalars(1).size() == 5);
  CHECK(out.bytes("").find("new") != std::string::npos);  // among the columns
  CHECK(out.bytes(trial_name(0)) == once.at(out.folder / "tensorboard" / trial_name(0) / kFile));
}

TEST_CASE("trials without results are rows when they have begun") {
  Exported out;
  for (int trial = 0; trial < 3; ++trial) add_trial(out.folder, trial, R"({"lr":0.1})", "");
  write_text(out.folder / "events.jsonl", event("attempt_started", 0) +
                                              event("trial_ended", 0, R"(,"status":"ERROR")") +
                                              event("attempt_started", 1));
  REQUIRE(out.run().code == 0);
  CHECK(out.bytes(trial_name(0)).find(hparams_end(TrialStatus::kError)) != std::string::npos);
  CHECK(out.bytes(trial_name(1)).find(kHparamsStart) != std::string::npos);
  CHECK(out.bytes(trial_name(1)).find(kHparamsEnd) == std::string::npos);
  CHECK_FALSE(fs::exists(out.folder / "tensorboard" / trial_name(2)));  // it waits
}

TEST_CASE("names with anything in them, and ten thousand of them, are kept as they are") {
  Exported out;
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += R"("k)" + std::to_string(i) + R"(":1,)";
  add_trial(out.folder, 0, R"({"lr":0.1})", line(1, many + R"("a \"b\"\n<i>":1,"Größe":2,"":3)"));
  // An empty key is not a key: such a line is damaged.
  Ended ended = out.run();
  CHECK(ended.code == 0);
  CHECK_HAS(ended.err, "warning: ");
  fs::remove_all(out.folder / "tensorboard");
  write_text(out.folder / trial_name(0) / "result.json",
             line(1, many + R"("a \"b\"\n<i>":1,"Größe":2)"));
  ended = out.run();
  CHECK(ended.code == 0);
  auto scalars = out.scalars(0);
  CHECK(scalars.size() == 10'003);
  CHECK(scalars.contains({1, "a \"b\"\n<i>"}));
  CHECK(scalars.contains({1, "Größe"}));
}

TEST_CASE("a damaged trial is told up to there, and the others are whole") {
  Exported out;
  add_trial(out.folder, 0, R"({"lr":0.1})",
            line(1, R"("loss":1)") + "{oops\n" + line(3, R"("loss":3)"));
  add_trial(out.folder, 1, R"({"lr":0.2})", line(1, R"("loss":2)"));
  const Ended ended = out.run();
  CHECK(ended.code == 0);
  CHECK_HAS(ended.err, trial_name(0) + "/result.json");
  CHECK(out.scalars(0).size() == 2);
  CHECK(out.scalars(1).size() == 2);
}

TEST_CASE("a folder that is not an experiment, or of a newer tune, is refused") {
  Exported out;
  fs::create_directories(out.shell.path() / "empty");
  Ended ended = out.shell.tune({"export", "--tensorboard", "empty"});
  CHECK(ended.code == 2);
  CHECK_HAS(ended.err, "empty");
  CHECK_FALSE(fs::exists(out.shell.path() / "empty/tensorboard"));
  write_text(out.folder / "experiment.json", testing::spec_text("loss", 9));
  ended = out.run();
  CHECK(ended.code != 0);
  CHECK_HAS(ended.err, "use the newer one");
}

TEST_CASE("a target that cannot be written is refused with its path") {
  Exported out;
  add_trial(out.folder, 0, R"({"lr":0.1})", line(1, R"("loss":1)"));
  write_text(out.shell.path() / "file", "x");
  const Ended ended = out.run({"--to", "file/below"});
  CHECK(ended.code != 0);
  CHECK_HAS(ended.err, "file/below");
  CHECK(out.shell.tune({"export", "s"}).code == 2);  // for nothing
  CHECK(out.shell.tune({"export", "s", "--to", "x"}).code == 2);
}

TEST_CASE("two processes never write one target") {
  Exported out;
  add_trial(out.folder, 0, R"({"lr":0.1})", line(1, R"("loss":1)"));
  TensorBoardExport running(out.folder, out.folder / "tensorboard");
  REQUIRE(running.has_target());
  const Ended ended = out.run();
  CHECK(ended.code == 2);
  CHECK_HAS(ended.err, "another process writes it");
  CHECK_FALSE(fs::exists(out.folder / "tensorboard" / kFile));
  CHECK(out.run({"--to", (out.shell.path() / "other").c_str()}).code == 0);
}

TEST_CASE("parameters are numbers, words and switches, each as it is") {
  const auto contains = [](const std::string& all, const std::string& part) {
    return all.find(part) != std::string::npos;
  };
  const std::string start = hparams_start(Config{{"lr", 0.5},
                                                 {"act", "relu"},
                                                 {"on", true},
                                                 {"n", nullptr},
                                                 {"bad", std::nan("")},
                                                 {"list", list({1, "a"})}},
                                          "t", 3);
  CHECK(contains(start, std::string("\n\x02lr\x12\x09\x11\0\0\0\0\0\0\xe0?", 15)));
  CHECK(contains(start, std::string("\n\x03"
                                    "act\x12\x06\x1a\x04relu")));
  CHECK(contains(start, std::string("\n\x02on\x12\x02 \x01")));
  CHECK(contains(start, R"([1,"a"])"));
  CHECK_FALSE(contains(start, "bad"));
}

}  // namespace
}  // namespace tune
