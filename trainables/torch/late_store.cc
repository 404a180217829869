#include "trainables/torch/late_store.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <utility>

namespace tune {

LateStore::LateStore(Open open, FileDescriptor socket)
    : process_(::getpid()), open_(std::move(open)), socket_(std::move(socket)) {}

LateStore::~LateStore() {
  if (!porter_.joinable()) return;
  if (::getpid() != process_) {  // a copy in a process that this rank has forked
    porter_.detach();
    return;
  }
  ::eventfd_write(ending_.get(), 1);
  porter_.join();
}

void LateStore::open() {
  store();
}

c10d::Store& LateStore::store() {
  const std::lock_guard lock(mutex_);
  if (!store_) {
    store_ = open_(std::move(socket_));
    store_->setTimeout(timeout_);
  }
  return *store_;
}

void LateStore::setTimeout(const std::chrono::milliseconds& timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
  if (store_) store_->setTimeout(timeout);
}

void LateStore::open_when_asked() {
  const std::lock_guard lock(mutex_);
  if (store_ || !socket_.is_open() || porter_.joinable()) return;
  ending_.reset(::eventfd(0, EFD_CLOEXEC));
  porter_ = std::thread([this, socket = socket_.get()] { wait_at_door(socket); });
}

// Where the store is opened meanwhile, by this rank itself, its own connection is what comes.
void LateStore::wait_at_door(int socket) {
  pollfd watched[] = {{socket, POLLIN, 0}, {ending_.get(), POLLIN, 0}};
  while (::poll(watched, 2, -1) < 0 && errno == EINTR) {
  }
  if (watched[1].revents != 0) return;
  try {
    open();
  } catch (const std::exception&) {
    // The rank that asks says that it got no answer.
  }
}

}  // namespace tune
