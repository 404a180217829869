// HeldWorker: what an agent holds of a worker's process, watched by one of its epolls.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <utility>

#include "core/agent/agent_actions.h"
#include "core/agent/worker_socket.h"
#include "core/platform/process.h"

namespace tune {

struct HeldWorker {
  HeldWorker(FileDescriptor given, int watches) : socket(std::move(given)), epoll(watches) {}
  WorkerSocket socket;
  int epoll;  // which watches it
  pid_t pid = 0;
  std::uint64_t attempt = 0;  // its key, when it is started
  bool readable = true;       // nothing wrong with it yet
  bool may_rest = false;      // by the last thing it said
};

inline void watch(WorkerId id, const HeldWorker& worker, bool resting = false) {
  epoll_event watched{};
  if (!resting) watched.events |= EPOLLIN;
  if (worker.socket.has_backlog()) watched.events |= EPOLLOUT;
  watched.data.u64 = id;
  const int descriptor = worker.socket.descriptor();
  if (::epoll_ctl(worker.epoll, EPOLL_CTL_MOD, descriptor, &watched) != 0) {
    ::epoll_ctl(worker.epoll, EPOLL_CTL_ADD, descriptor, &watched);
  }
}

inline void unwatch(const HeldWorker& worker) {
  ::epoll_ctl(worker.epoll, EPOLL_CTL_DEL, worker.socket.descriptor(), nullptr);
}

}  // namespace tune
