// Trials that users add have numbers between those of a searcher's suggestions.
#include "tune/control/numbered_searcher.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

namespace tune {
namespace {

// Writes down what it is told, in its own numbers.
class Counting : public Searcher {
 public:
  explicit Counting(std::vector<std::string>* book) : book_(book) {}
  void configure(const SearcherSetup&) override {}
  std::optional<std::uint64_t> total() const override { return 4; }
  std::optional<Config> suggest(TrialNumber trial) override {
    proposal_.neighbours = {TrialNumber{0}, TrialNumber{1}, TrialNumber{2}};
    return Config{{"x", trial.value}};
  }
  void result(TrialNumber trial, const ResultView& result) override {
    book_->push_back(fmt::format("result {} of {}", result.iteration(), trial.value));
  }
  void pause_trial(TrialNumber trial) override {
    book_->push_back(fmt::format("pause {}", trial.value));
  }
  void resume_trial(TrialNumber trial) override {
    book_->push_back(fmt::format("resume {}", trial.value));
  }
  void end_trial(TrialNumber trial, TrialEnd, const Reported*) override {
    book_->push_back(fmt::format("end {}", trial.value));
  }
  void end_added(const Config& config, TrialEnd, const Reported& last) override {
    book_->push_back(fmt::format("added {} at {}", config.dump(), last.iteration));
  }
  std::string save() const override { return "state"; }
  void restore(std::string_view) override {}
  const Proposal* newest_proposal() const override { return &proposal_; }

 private:
  std::vector<std::string>* book_;
  Proposal proposal_;
};

TEST_CASE("a searcher counts its own suggestions, and hears of no others") {
  std::vector<std::string> book;
  NumberedSearcher searcher(std::make_unique<Counting>(&book));
  CHECK(searcher.suggest(TrialNumber{0})->get<int>("x") == 0);
  searcher.skip(TrialNumber{1});
  searcher.skip(TrialNumber{3});
  CHECK(searcher.total() == 6);
  CHECK(searcher.suggest(TrialNumber{2})->get<int>("x") == 1);
  CHECK(searcher.suggest(TrialNumber{4})->get<int>("x") == 2);
  // Its suggestions 0, 1, 2 are the trials 0, 2, 4.
  REQUIRE(searcher.newest_proposal() != nullptr);
  CHECK(searcher.newest_proposal()->neighbours ==
        std::vector<TrialNumber>{TrialNumber{0}, TrialNumber{2}, TrialNumber{4}});
  Reported report;
  report.iteration = 9;
  report.result = pack(Result{{"m", 1}});
  for (const std::uint32_t trial : {1, 2, 3, 4}) {
    searcher.result(TrialNumber{trial}, report);
    searcher.pause_trial(TrialNumber{trial});
    searcher.resume_trial(TrialNumber{trial});
    searcher.end_trial(TrialNumber{trial}, TrialEnd::kCompleted, &report);
  }
  CHECK(book == std::vector<std::string>{"result 9 of 1", "pause 1", "resume 1", "end 1",
                                         "result 9 of 2", "pause 2", "resume 2", "end 2"});
  Trial added;
  added.number = TrialNumber{1};
  added.config = pack(Config{{"x", 7}});
  book.clear();
  searcher.end_added(added, TrialEnd::kCompleted);  // it never reported
  CHECK(book.empty());
  added.last = report;
  searcher.end_added(added, TrialEnd::kCompleted);
  CHECK(book == std::vector<std::string>{R"(added {"x":7} at 9)"});
}

TEST_CASE("a restored searcher skips only what it is told again") {
  std::vector<std::string> book;
  NumberedSearcher searcher(std::make_unique<Counting>(&book));
  searcher.skip(TrialNumber{0});
  CHECK(searcher.save() == "state");
  searcher.restore("state");
  CHECK(searcher.total() == 4);
  searcher.skip(TrialNumber{0});
  CHECK(searcher.suggest(TrialNumber{1})->get<int>("x") == 0);
}

}  // namespace
}  // namespace tune
