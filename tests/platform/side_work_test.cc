#include "core/platform/side_work.h"

#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/platform/process.h"
#include "core/refusal.h"

namespace tune {
namespace {

TEST_CASE("work is done in its order, beside the thread that gave it") {
  const int threads = thread_count();
  std::vector<int> done;
  std::thread::id worker;
  SideWork work(1);
  CHECK(thread_count() == threads);  // a process may be forked before the first work
  for (int i = 0; i < 100; ++i) {
    work.add(0, [&done, &worker, i] {
      done.push_back(i);
      worker = std::this_thread::get_id();
    });
  }
  work.finish();
  REQUIRE(done.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(done[static_cast<std::size_t>(i)] == i);
  CHECK(worker != std::this_thread::get_id());
}

TEST_CASE("there is room until what waits holds too much, and again when it is done") {
  SideWork work(100);
  std::promise<void> go;
  std::promise<void> begun;
  CHECK(work.has_room());
  work.add(60, [&] {
    begun.set_value();
    go.get_future().wait();
  });
  begun.get_future().wait();
  CHECK(work.has_room());
  work.add(40, [] {});  // what is being done still holds its memory
  CHECK_FALSE(work.has_room());
  go.set_value();
  work.finish();
  CHECK(work.has_room());
}

TEST_CASE("a person may be told that work takes long before its end is waited for") {
  SideWork work(1);
  CHECK(work.rests_within(std::chrono::milliseconds(0)));
  std::promise<void> go;
  work.add(0, [&] { go.get_future().wait(); });
  CHECK_FALSE(work.rests_within(std::chrono::milliseconds(1)));
  go.set_value();
  CHECK(work.rests_within(std::chrono::minutes(1)));
  work.add(0, [] { throw Error(ErrorCode::kIo, "no room"); });
  CHECK(work.rests_within(std::chrono::minutes(1)));  // and finish() says why
  CHECK_THROWS_AS(work.finish(), Error);
}

TEST_CASE("before each work it is asked whether it may still be done") {
  SideWork work(1);
  int asked = 0, done = 0;
  work.before_each([&] {
    if (++asked == 3) throw Error(ErrorCode::kIo, "not any more");
  });
  for (int i = 0; i < 2; ++i) work.add(0, [&] { ++done; });
  work.finish();
  work.add(0, [&] { ++done; });
  CHECK_HAS(testing::refusal([&] { work.finish(); }, ErrorCode::kIo), "not any more");
  CHECK(done == 2);
  CHECK(asked == 3);
}

TEST_CASE("what many works have gathered is written once a round") {
  SideWork work(1);
  std::promise<void> go;
  std::promise<void> begun;
  int gathered = 0;
  std::vector<int> written;
  work.after_each_round([&] { written.push_back(gathered); });
  work.add(0, [&] {
    ++gathered;
    begun.set_value();
    go.get_future().wait();
  });
  begun.get_future().wait();
  for (int i = 0; i < 9; ++i) work.add(0, [&] { ++gathered; });
  go.set_value();
  work.finish();
  CHECK(written == std::vector<int>{1, 10});
}

TEST_CASE(
    "work that is given while the thread lets more gather is done, whether it was woken or not") {
  SideWork work(100);
  for (int i = 0; i < 50; ++i) {  // each is given right after a round
    std::promise<void> done;
    work.add(i % 2 == 0 ? 1 : 100, [&] { done.set_value(); });
    done.get_future().wait();
  }
  work.finish();
  CHECK(work.has_room());
}

TEST_CASE("an error is seen by every later call, and nothing is done after it") {
  SideWork work(1);
  bool was_done = false;
  bool was_written = false;
  work.after_each_round([&] { was_written = true; });
  work.add(0, [] { throw Error(ErrorCode::kIo, "the disk is full"); });
  CHECK(testing::refusal([&] { work.finish(); }, ErrorCode::kIo) == "the disk is full");
  CHECK(testing::refusal([&] { work.check(); }, ErrorCode::kIo) == "the disk is full");
  CHECK(testing::refusal([&] { work.add(0, [&] { was_done = true; }); }, ErrorCode::kIo) ==
        "the disk is full");
  work.stop();
  CHECK_FALSE(was_done);
  CHECK_FALSE(was_written);
}

TEST_CASE("stopped, it finishes the work that it has begun and no other") {
  SideWork work(1);
  std::promise<void> go;
  std::promise<void> begun;
  int done = 0;
  work.add(0, [&] {
    begun.set_value();
    go.get_future().wait();
    ++done;
  });
  begun.get_future().wait();
  auto held = std::make_shared<int>(100);
  const std::weak_ptr<int> waiting = held;
  work.add(0, [&done, held = std::move(held)] { done += *held; });
  std::thread opener([&] {
    while (!waiting.expired()) std::this_thread::yield();  // until stop() has dropped it
    go.set_value();
  });
  work.stop();
  opener.join();
  CHECK(done == 1);
  work.add(0, [&] { done += 100; });
  CHECK(done == 1);
}

}  // namespace
}  // namespace tune
