#include "core/agent/object_link.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "core/agent/relay_folder.h"
#include "core/platform/deaf_thread.h"
#include "core/platform/process.h"
#include "core/platform/s3_store.h"
#include "core/platform/system_clock.h"

namespace tune {

namespace {
constexpr int kObjectNiceness = 10;
}

struct ObjectLink::Keeper {
  Keeper(const ObjectPlace& place, const std::filesystem::path& folder,
         const std::string& experiment_id)
      : files(folder),
        store({place.address, place.endpoint, place.region}),
        carrier(files, store, experiment_id) {}

  void work() {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kObjectNiceness);
    while (take_orders()) {
      carrier.on_time(clock.monotonic());
      tell();
    }
  }

  // Waits for an order, or until the carrier has something to do. False: it is to end, and what was
  // ordered to be removed is.
  bool take_orders() {
    std::vector<Order> taken;
    bool goes_on = true;
    {
      std::unique_lock lock(mutex);
      const auto is_woken = [this] { return ends || !orders.empty(); };
      if (carrier.is_idle()) {
        woken.wait(lock, is_woken);
      } else if (const auto now = clock.monotonic(), at = carrier.next_look(now); at > now) {
        woken.wait_for(lock, at - now, is_woken);
      }
      goes_on = !ends;
      taken.swap(orders);
    }
    for (const Order& one : taken) one(carrier);
    return goes_on;
  }

  void tell() {
    std::vector<RelayOutcome> ended = carrier.take_outcomes();
    if (ended.empty()) return;
    const std::lock_guard lock(mutex);
    std::move(ended.begin(), ended.end(), std::back_inserter(outcomes));
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(bell.get(), &one, sizeof one);
  }

  SystemClock clock;
  RelayFolder files;
  S3Store store;
  ObjectCarrier carrier;  // of the thread alone
  FileDescriptor bell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;  // of all that follows
  std::condition_variable woken;
  std::vector<Order> orders;
  std::vector<RelayOutcome> outcomes;
  bool ends = false;
  std::thread thread;
};

ObjectLink::ObjectLink(const ObjectPlace& place, const std::filesystem::path& folder,
                       const std::string& experiment_id)
    : keeper_(std::make_unique<Keeper>(place, folder, experiment_id)) {
  keeper_->thread = deaf_thread([keeper = keeper_.get()] { keeper->work(); });
}

ObjectLink::~ObjectLink() {
  {
    const std::lock_guard lock(keeper_->mutex);
    keeper_->ends = true;
  }
  keeper_->store.abandon();
  keeper_->woken.notify_one();
  keeper_->thread.join();
}

void ObjectLink::order(Order order) {
  {
    const std::lock_guard lock(keeper_->mutex);
    keeper_->orders.push_back(std::move(order));
  }
  keeper_->woken.notify_one();
}

void ObjectLink::remove(const std::string& folder) {
  order([keeper = keeper_.get(), folder](ObjectCarrier&) { keeper->files.remove(folder); });
}

int ObjectLink::descriptor() const {
  return keeper_->bell.get();
}

std::vector<RelayOutcome> ObjectLink::take_outcomes() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(keeper_->bell.get(), &count, sizeof count);
  const std::lock_guard lock(keeper_->mutex);
  return std::exchange(keeper_->outcomes, {});
}

}  // namespace tune
