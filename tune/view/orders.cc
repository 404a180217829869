#include "tune/view/orders.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "tune/results/ask_driver.h"

namespace tune::view {

namespace {

constexpr std::array<std::string_view, 5> kOfTrials = {"stop", "pause", "unpause", "retry", "note"};

[[noreturn]] void refuse_order(const std::string& why) {
  throw Error(ErrorCode::kBadInput, "an order: " + why);
}

std::string text_in(const Value& order, std::string_view key) {
  const Value* found = order.find(key);
  if (found == nullptr) return {};
  if (!found->is_string()) refuse_order(fmt::format("'{}' has to be a text", key));
  return found->string();
}

std::int64_t number_in(const Value& order, std::string_view key) {
  const Value* found = order.find(key);
  if (found == nullptr || found->type() != Value::Type::kInt) {
    refuse_order(fmt::format("'{}' has to be a whole number", key));
  }
  return found->integer();
}

}  // namespace

PageOrder read_order(std::string_view body) {
  const Value given = parse_json(body, "an order");
  if (!given.is_map()) refuse_order("it has to be a map");
  PageOrder order{text_in(given, "x"), Value::make_map()};
  const std::string what = text_in(given, "do");
  order.request.set("do", what);
  order.request.set("user", user_name());
  if (const std::string reason = text_in(given, "reason"); !reason.empty()) {
    order.request.set("reason", reason);
  }
  if (std::ranges::find(kOfTrials, what) != kOfTrials.end()) {
    const std::int64_t trial = number_in(given, "trial");
    if (trial < 0) refuse_order("there is no such trial");
    order.request.set("trial", std::to_string(trial));
    if (what == "note") order.request.set("text", text_in(given, "text"));
  } else if (what == "add") {
    const Value* config = given.find("config");
    if (config == nullptr || !config->is_map()) refuse_order("'config' has to be a map");
    order.request.set("config", *config);
  } else if (what == "change") {
    order.request.set("num_samples", number_in(given, "num_samples"));
  } else {
    refuse_order(fmt::format("there is none '{}'", what));
  }
  return order;
}

class Orders::Inside {
 public:
  Inside() : thread_([this] { run(); }) {}
  ~Inside() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  bool give(std::filesystem::path experiment, Value request, Done done) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostWaiting) return false;
    waiting_.push_back({std::move(experiment), std::move(request), std::move(done)});
    changed_.notify_all();
    return true;
  }

 private:
  struct Waiting {
    std::filesystem::path experiment;
    Value request;
    Done done;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      if (ends_) return;
      const Waiting next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      carry_out(next);
      lock.lock();
    }
  }

  static void carry_out(const Waiting& order) {
    try {
      order.done(200, to_json(Value{{"done", ask_driver(order.experiment, order.request)}}));
    } catch (const std::exception& error) {
      order.done(200, to_json(Value{{"error", error.what()}}));
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  bool ends_ = false;
  std::thread thread_;  // the last: it uses all of them
};

Orders::Orders() : inside_(std::make_unique<Inside>()) {}
Orders::~Orders() = default;
bool Orders::give(std::filesystem::path experiment, Value request, Done done) {
  return inside_->give(std::move(experiment), std::move(request), std::move(done));
}

}  // namespace tune::view
