#include "core/platform/side_output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "core/platform/deaf_thread.h"

namespace tune {

struct SideOutput::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::string waiting;
  std::size_t writing = 0;  // bytes that the thread has taken
  bool was_refused = false;
  bool ends = false;
  std::thread thread;

  bool is_idle() const { return waiting.empty() && writing == 0; }
};

namespace {

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

SideOutput::~SideOutput() {
  finish();
}

SideOutput::Written SideOutput::finish() {
  if (!shared_) return Written::kAll;
  const bool done = wait(kEndPatience);
  Written written = Written::kNotRead;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ends = true;
    shared_->waiting.clear();
    if (done) written = shared_->was_refused ? Written::kRefused : Written::kAll;
  }
  shared_->changed.notify_all();
  done ? shared_->thread.join() : shared_->thread.detach();
  shared_.reset();
  return written;
}

bool SideOutput::write(std::string_view text) {
  if (!shared_) {
    shared_ = std::make_shared<Shared>();
    shared_->thread = deaf_thread([shared = shared_, to = descriptor_] { work(shared, to); });
  }
  {
    const std::lock_guard lock(shared_->mutex);
    const std::size_t held = shared_->waiting.size() + shared_->writing;
    if (held > 0 && held + text.size() > kMaxWaitingBytes) return false;
    shared_->waiting += text;
  }
  shared_->changed.notify_all();
  return true;
}

bool SideOutput::is_idle() const {
  if (!shared_) return true;
  const std::lock_guard lock(shared_->mutex);
  return shared_->is_idle();
}

bool SideOutput::wait(std::chrono::milliseconds limit) const {
  if (!shared_) return true;
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, limit, [this] { return shared_->is_idle(); });
}

void SideOutput::work(const std::shared_ptr<Shared>& shared, int descriptor) {
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->ends || !shared->waiting.empty(); });
    if (shared->ends) return;
    const std::string text = std::exchange(shared->waiting, {});
    shared->writing = text.size();
    lock.unlock();
    const bool is_written = write_all(descriptor, text);
    lock.lock();
    shared->writing = 0;
    shared->was_refused = shared->was_refused || !is_written;
    shared->changed.notify_all();
  }
}

SideOutput::Written write_or_give_up(int descriptor, std::string_view text) {
  SideOutput output(descriptor);
  output.write(text);
  return output.finish();
}

bool write_if_it_fits(int descriptor, std::string_view line) {
  pollfd watched{descriptor, POLLOUT, 0};
  if (poll(&watched, 1, 0) != 1) return false;
  return write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace tune
