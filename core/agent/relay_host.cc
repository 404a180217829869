#include "core/agent/relay_host.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

#include <fmt/format.h>

#include "core/agent/relay_desk.h"
#include "core/agent/relay_folder.h"
#include "core/error.h"
#include "core/platform/bulk_socket.h"
#include "core/platform/deaf_thread.h"
#include "core/platform/process.h"
#include "core/platform/system_clock.h"

namespace tune {
namespace {

constexpr std::chrono::milliseconds kDeskTurn{100};  // the longest sleep

}  // namespace

struct RelayHost::Keeper {
  Keeper(const std::vector<std::string>& addresses, int port, const JoinKeys& keys,
         const RelayedExperiment& experiment)
      : socket(addresses, port, keys),
        files(experiment.folder),
        desk(files, experiment.id),
        mark(experiment.mark),
        end(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void work() {
    std::string agent, frame;
    std::uint64_t told = 0;
    while (::read(end.get(), &told, sizeof told) < 0) {
      socket.wait(end.get(), kDeskTurn);
      // All that has come before the clock is asked who is silent: this thread may have waited for
      // a disk.
      while (socket.receive(agent, frame)) {
        hear(agent, frame);
        answer();
      }
      desk.on_time(clock.monotonic());
      answer();
    }
  }

  // Experiments that share their keys may listen one after the other at one address, and the trials
  // of all have the same names.
  void hear(const std::string& agent, const std::string& frame) try {
    if (!mark.empty() && !agent.starts_with(bulk_identity(mark, ""))) return;
    desk.on_request(clock.monotonic(), agent, decoded<RelayRequest>(frame));
  } catch (const Error&) {  // of another version, or damaged: it is not answered
  }

  void answer() {
    for (const auto& [agent, said] : desk.take_answers()) socket.send(agent, encoded(said));
  }

  SystemClock clock;
  BulkSocket socket;  // of the thread alone, but for its gate
  RelayFolder files;
  RelayDesk desk;
  std::string mark;
  FileDescriptor end;
  std::thread thread;
};

RelayHost::RelayHost(const std::vector<std::string>& addresses, int port, const JoinKeys& keys,
                     const RelayedExperiment& experiment)
    : keeper_(std::make_unique<Keeper>(addresses, port, keys, experiment)) {
  keeper_->thread = deaf_thread([keeper = keeper_.get()] { keeper->work(); });
}

RelayHost::~RelayHost() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(keeper_->end.get(), &one, sizeof one);
  keeper_->thread.join();
}

int RelayHost::port() const {
  return keeper_->socket.port();
}

void RelayHost::admit(const std::string& join_public_key) {
  keeper_->socket.admit(join_public_key);
}

void RelayHost::admit_also(const std::string& join_public_key) {
  keeper_->socket.admit_also(join_public_key);
}

std::vector<std::string> RelayHost::take_refused() {
  std::vector<std::string> refused = keeper_->socket.take_refused();
  for (std::string& text : refused) {
    text = fmt::format("at port {}, which takes checkpoints: {}", port(), text);
  }
  return refused;
}

}  // namespace tune
