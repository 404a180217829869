#include "tune/view/worker.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "tune/view/gzip.h"
#include "tune/view/orders.h"

namespace tune::view {

namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kLookEvery{100};
constexpr std::chrono::milliseconds kLookWhenBehind{1};  // questions are answered between
constexpr int kMostOfProcessors = 100;  // a hundredth of them is spent on looking at what runs
constexpr std::chrono::milliseconds kLoadSlice{50};
constexpr std::chrono::seconds kWatchedAfterQuestion{5};
constexpr std::size_t kGzipFrom = 1024;
constexpr std::size_t kMaxKeptBytes = 128u << 20;
constexpr std::size_t kMaxKept = 32;
constexpr int kFast = 1;

// Of processors, by this thread so far.
std::chrono::nanoseconds spent_so_far() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

}  // namespace

std::chrono::nanoseconds pause_after(const Look& look, unsigned processors) {
  const std::chrono::nanoseconds least = look.is_behind ? kLookWhenBehind : kLookEvery;
  if (!look.is_live) return least;
  return std::max(least, look.spent * kMostOfProcessors / std::max(1u, processors));
}

class Worker::Inside {
 public:
  Inside(Storage storage, std::string boot, Changed changed, bool control)
      : storage_(std::move(storage)),
        api_(storage_, std::move(boot), control),
        changed_(std::move(changed)),
        timer_(context_) {}

  ~Inside() { stop(); }

  void start() {
    look();
    thread_ = std::thread([this] { context_.run(); });
  }

  void stop() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
    orders_.reset();  // while those live whom it answers
  }

  void ask(ApiRequest request, Done done) {
    asio::post(context_, [this, request = std::move(request), done = std::move(done)] {
      asked_ = Storage::Clock::now();
      done(reply(request));
      go_on_loading();
    });
  }

  void order(std::string body, Done done) {
    asio::post(context_, [this, body = std::move(body), done = std::move(done)] {
      const auto tell = [done](int status, std::string text) {
        done({.status = status,
              .type = "application/json",
              .body = std::make_shared<const std::string>(std::move(text))});
      };
      try {
        PageOrder order = read_order(body);
        const std::filesystem::path* experiment = api_.directory_of(order.key);
        if (experiment == nullptr) return tell(404, words("there is no such experiment"));
        if (!orders_->give(*experiment, std::move(order.request), tell)) {
          tell(503, words("too many orders wait already"));
        }
      } catch (const Error& error) {
        tell(400, words(error.what()));
      }
    });
  }

  std::atomic<bool> is_watched = false;

 private:
  static std::string words(const std::string& why) { return to_json(Value{{"error", why}}); }

  Reply reply(const ApiRequest& request) {
    Answer answer = api_.answer(request.target, request.known_etag);
    Reply reply{.status = answer.status, .type = std::move(answer.type), .etag = answer.etag};
    if (!request.takes_gzip || answer.body.size() < kGzipFrom) {
      reply.body = std::make_shared<const std::string>(std::move(answer.body));
      return reply;
    }
    reply.is_gzip = true;
    reply.body = compressed(request.target, answer);
    return reply;
  }

  // An answer that many ask for is compressed once.
  std::shared_ptr<const std::string> compressed(const std::string& target, const Answer& answer) {
    const auto kept = kept_.find(target);
    if (kept != kept_.end() && !answer.etag.empty() && kept->second.first == answer.etag) {
      return kept->second.second;
    }
    auto body = std::make_shared<const std::string>(gzipped(answer.body, kFast));
    if (answer.etag.empty()) return body;
    if (kept_.size() >= kMaxKept || kept_bytes_ + body->size() > kMaxKeptBytes) {
      kept_.clear();
      kept_bytes_ = 0;
    }
    kept_bytes_ += body->size();
    kept_.insert_or_assign(target, std::pair(answer.etag, body));
    return body;
  }

  // In slices, so that questions are answered meanwhile.
  void go_on_loading() {
    if (std::exchange(is_loading_, true)) return;
    asio::post(context_, [this] {
      is_loading_ = false;
      const std::uint64_t before = storage_.change();
      const bool more = storage_.load(Storage::Clock::now() + kLoadSlice);
      if (storage_.change() != before) tell_all();
      if (more) go_on_loading();
    });
  }

  void tell_all() {
    std::vector<std::string> keys;
    for (const auto& [key, opened] : storage_.opened()) keys.push_back(key);
    changed_(keys, storage_.change());
  }

  void look() {
    timer_.expires_after(pause_after(last_, processors_));
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      const auto now = Storage::Clock::now();
      if (is_watched || now - asked_ < kWatchedAfterQuestion) {
        follow(now);
      }
      look();
    });
  }

  // An unreadable file is listed among an experiment's problems; any other error (no memory)
  // is tried again at the next look.
  void follow(Storage::Clock::time_point now) try {
    last_ = {};
    const std::chrono::nanoseconds begun = spent_so_far();
    const std::vector<std::string> keys = storage_.poll(now);
    last_.spent = spent_so_far() - begun;
    if (!keys.empty()) changed_(keys, storage_.change());
    for (const auto& [key, opened] : storage_.opened()) {
      last_.is_behind = last_.is_behind || opened.experiment->is_behind();
      last_.is_live = last_.is_live || opened.experiment->is_live();
    }
  } catch (const std::exception&) {
  }

  Storage storage_;
  Api api_;
  Changed changed_;
  asio::io_context context_;
  asio::steady_timer timer_;
  std::thread thread_;
  Storage::Clock::time_point asked_{};
  bool is_loading_ = false;
  Look last_;
  const unsigned processors_ = std::thread::hardware_concurrency();
  std::map<std::string, std::pair<std::string, std::shared_ptr<const std::string>>> kept_;
  std::size_t kept_bytes_ = 0;
  std::unique_ptr<Orders> orders_ = std::make_unique<Orders>();
};

Worker::Worker(Storage storage, std::string boot, Changed changed, bool control)
    : inside_(std::make_unique<Inside>(std::move(storage), std::move(boot), std::move(changed),
                                       control)) {}
Worker::~Worker() = default;
void Worker::start() {
  inside_->start();
}
void Worker::stop() {
  inside_->stop();
}
void Worker::ask(ApiRequest request, Done done) {
  inside_->ask(std::move(request), std::move(done));
}
void Worker::order(std::string body, Done done) {
  inside_->order(std::move(body), std::move(done));
}
void Worker::set_watched(bool watched) {
  inside_->is_watched = watched;
}

}  // namespace tune::view
