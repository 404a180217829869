#include "core/platform/file_worker.h"

#include <doctest/doctest.h>

#include <poll.h>

#include <future>
#include <thread>
#include <vector>

#include "platform/surroundings.h"

namespace tune::testing {
namespace {

bool is_readable(const FileWorker& files) {
  pollfd watched{files.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

TEST_CASE("work is done beside the loop, its outcomes in the loop, both in order") {
  FileWorker files;
  const auto loop = std::this_thread::get_id();
  std::vector<int> done, told;
  for (int i = 0; i < 100; ++i) {
    files.give([&, i] {
      if (std::this_thread::get_id() != loop) done.push_back(i);
      return [&, i] {
        if (std::this_thread::get_id() == loop) told.push_back(i);
      };
    });
  }
  REQUIRE(eventually([&] {
    files.take_outcomes();
    return files.waiting() == 0;
  }));
  CHECK(done.size() == 100);
  CHECK(std::is_sorted(done.begin(), done.end()));
  CHECK(told == done);
  // An outcome may be taken before its signal has come.
  CHECK(eventually([&] {
    files.take_outcomes();
    return !is_readable(files);
  }));
}

TEST_CASE("work that stalls holds up neither the loop nor what is given") {
  std::promise<void> stall;
  FileWorker files;
  bool over = false;
  files.give([&] {
    stall.get_future().wait();
    return [&] { over = true; };
  });
  for (std::size_t i = 1; i < FileWorker::kMaxWaiting; ++i) {
    CHECK_FALSE(files.is_full());
    files.give([] { return [] {}; });
  }
  CHECK(files.is_full());  // the loop takes on no more
  files.take_outcomes();   // there is none, and it does not wait for one
  CHECK_FALSE(over);
  CHECK_FALSE(is_readable(files));
  stall.set_value();
  REQUIRE(eventually([&] { return is_readable(files); }));
  CHECK(eventually([&] {
    files.take_outcomes();
    return over && files.waiting() == 0;
  }));
}

TEST_CASE("what was given is done before it ends") {
  int done = 0;
  {
    FileWorker files;
    for (int i = 0; i < 10; ++i) {
      files.give([&] {
        ++done;
        return [] {};
      });
    }
  }
  CHECK(done == 10);
}

}  // namespace
}  // namespace tune::testing
