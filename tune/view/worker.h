// Worker: the thread that reads experiments. What the server asks is answered there, one after
// another; loading and following go on in between.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tune/view/api.h"

namespace tune::view {

// An answer with its body, as it goes out.
struct Reply {
  int status = 200;
  std::string type = {};
  std::shared_ptr<const std::string> body = {};
  bool is_gzip = false;
  std::string etag = {};
};

struct ApiRequest {
  std::string target;
  std::string known_etag;
  bool takes_gzip = false;
};

// One look at what is new in the files of experiments.
struct Look {
  std::chrono::nanoseconds spent{0};  // of processors
  bool is_behind = false;             // it has left something unread
  bool is_live = false;               // a sweep runs
};
// Until the next one. A sweep that runs has the processors: looking at it takes a hundredth of them
// at most, so that of one that reports faster than this reads, the newest results come later.
std::chrono::nanoseconds pause_after(const Look& look, unsigned processors);

class Worker {
 public:
  using Done = std::function<void(Reply)>;  // called in the worker's thread
  // Experiments with changes, by key, with the server's count of changes.
  using Changed = std::function<void(const std::vector<std::string>& keys, std::uint64_t change)>;

  // `control`: orders are taken.
  Worker(Storage storage, std::string boot, Changed changed, bool control = false);
  ~Worker();  // ends the thread
  void start();
  void stop();
  // From any thread.
  void ask(ApiRequest request, Done done);
  // An order of the page, which its driver answers; from any thread, and `done` in any other.
  void order(std::string body, Done done);
  // Whether somebody listens for changes: nothing is looked for otherwise.
  void set_watched(bool watched);

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace tune::view
