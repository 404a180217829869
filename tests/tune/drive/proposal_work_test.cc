#include "tune/drive/proposal_work.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <future>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/refusal.h"
#include "tune/drive/answer_times.h"

namespace tune {
namespace {

using namespace std::chrono_literals;

// Waits until there is one.
Proposed answer_of(ProposalWork& work) {
  pollfd watched{work.descriptor(), POLLIN, 0};
  REQUIRE(poll(&watched, 1, 60'000) == 1);
  const std::optional<Proposed> answer = work.take();
  REQUIRE(answer.has_value());
  CHECK(poll(&watched, 1, 0) == 0);
  CHECK_FALSE(work.take().has_value());
  return *answer;
}

TEST_CASE("answers are made beside the loop, one after the other, and wake it") {
  ProposalWork work;
  CHECK(work.descriptor() == -1);
  CHECK_FALSE(work.take().has_value());
  std::promise<void> go;
  work.ask({1, 1}, [ready = go.get_future().share()] {
    ready.wait();
    return std::string("one");
  });
  CHECK_FALSE(work.take().has_value());
  go.set_value();
  const Proposed first = answer_of(work);
  CHECK(first.question == 1);
  CHECK(first.answer.bytes == "one");
  CHECK(first.error.empty());
  CHECK(first.took > Duration{});
  work.ask({7, 1}, [] { return std::string("seven"); });
  const Proposed second = answer_of(work);
  CHECK(second.question == 7);
  CHECK(second.took >= first.took);  // the longer one is told of both
}

TEST_CASE("of the last answers the longest time is told") {
  AnswerTimes times;
  CHECK(times.said(20ms, 1) == 20ms);
  CHECK(times.said(90ms, 1) == 90ms);
  for (int i = 0; i < 63; ++i) CHECK(times.said(30ms, 1) == 90ms);
  CHECK(times.said(25ms, 1) == 30ms);
}

TEST_CASE("an answer is said to take as long as a full search of each, but for more than 16") {
  CHECK(AnswerTimes().said(1ms, 4) == 40ms);
  CHECK(AnswerTimes().said(50ms, 4) == 50ms);
  CHECK(AnswerTimes().said(1ms, 64) == 160ms);
}

TEST_CASE("what an answer throws, its size, and that there is none are its error") {
  const auto error_of = [](const Searcher::Question& make) {
    const Proposed proposed = answer_now(3, make);
    CHECK(proposed.question == 3);
    CHECK(proposed.answer.bytes.empty());
    return proposed.error;
  };
  CHECK(error_of([]() -> std::string { throw std::runtime_error("no luck"); }) == "no luck");
  CHECK_FALSE(error_of([]() -> std::string { throw 7; }).empty());
  CHECK_FALSE(error_of([]() -> std::string { throw std::runtime_error(""); }).empty());
  CHECK_HAS(error_of([] { return std::string(kMaxAnswerBytes + 1, 'x'); }), "at most 4194304");
  CHECK_HAS(error_of(nullptr), "gave no question");
  ProposalWork work;
  work.ask({1, 1}, []() -> std::string { throw std::runtime_error("no luck"); });
  CHECK(answer_of(work).error == "no luck");
}

TEST_CASE("an answer that nobody takes any more is let go") {
  std::promise<void> begun;
  {
    ProposalWork work;
    work.ask({1, 1}, [&begun] {
      begun.set_value();
      return std::string("late");
    });
    begun.get_future().wait();
  }
}

}  // namespace
}  // namespace tune
