#include "core/agent/relay_link.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/agent/checkpoint_files.h"
#include "core/agent/relay_folder.h"
#include "core/error.h"
#include "core/platform/bulk_socket.h"
#include "core/platform/deaf_thread.h"
#include "core/platform/files.h"
#include "core/platform/fingerprint.h"
#include "core/platform/process.h"
#include "core/platform/system_clock.h"

namespace tune {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kLinkTurn{100};  // the longest sleep
constexpr int kNiceness = 10;  // a thread inherits it of its maker: those of the socket have it too

void ring(const FileDescriptor& bell) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(bell.get(), &one, sizeof one);
}

void silence(const FileDescriptor& bell) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(bell.get(), &count, sizeof count);
}

fs::path own_folder(const std::string& experiment_id) {
  std::string name = (fs::temp_directory_path() / ("tune-" + experiment_id + "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) throw file_error("making a folder like", name, errno);
  return name;
}

}  // namespace

struct RelayLink::Keeper {
  Keeper(JoinToken first_token, std::string first_address, const std::string& experiment_id,
         const std::string& mark)
      : folder(own_folder(experiment_id)),
        files(folder),
        client(files, experiment_id),
        identity(bulk_identity(mark, folder.filename().string())),
        token(std::move(first_token)),
        address(std::move(first_address)) {}
  ~Keeper() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  void work() {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness);
    std::optional<BulkSocket> socket;
    std::string nobody, frame;
    while (!take_orders(socket)) {
      wait(socket);
      silence(orders_bell);
      while (socket && socket->receive(nobody, frame)) {
        hear(frame);
        say(socket);
      }
      client.on_time(clock.monotonic());
      say(socket);
    }
  }

  void wait(std::optional<BulkSocket>& socket) {
    if (socket) return socket->wait(orders_bell.get(), kLinkTurn);
    pollfd watched{orders_bell.get(), POLLIN, 0};
    ::poll(&watched, 1, static_cast<int>(kLinkTurn.count()));
  }

  // True: it is to end.
  bool take_orders(std::optional<BulkSocket>& socket) {
    std::vector<Order> taken;
    bool connects = false;
    {
      const std::lock_guard lock(mutex);
      if (ends) return true;
      taken.swap(orders);
      connects = std::exchange(is_elsewhere, false);
    }
    if (connects) connect(socket);
    for (const Order& one : taken) one(client, clock.monotonic());
    return false;
  }

  void connect(std::optional<BulkSocket>& socket) {
    JoinToken to;
    std::string at;
    {
      const std::lock_guard lock(mutex);
      to = token;
      at = address;
    }
    try {
      if (socket) return socket->connect(to, at);
      socket.emplace(to, at, identity);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      outcomes.emplace_back(std::in_place_type<RelayNotice>, error.what());
      ring(outcomes_bell);
    }
  }

  void hear(const std::string& frame) try {
    client.on_answer(clock.monotonic(), decoded<RelayAnswer>(frame));
  } catch (const Error&) {  // damaged: it is asked again
  }

  void say(std::optional<BulkSocket>& socket) {
    for (const RelayRequest& request : client.take_requests()) {
      if (socket) socket->send({}, encoded(request));
    }
    std::vector<RelayOutcome> ended = client.take_outcomes();
    for (RelayOutcome& outcome : ended) {
      if (auto* fetched = std::get_if<RelayPluginFetched>(&outcome)) identify(*fetched);
    }
    tell(std::move(ended));
  }

  // In this thread: a plugin may have hundreds of megabytes, and the agent's loop waits for no
  // disk.
  void identify(RelayPluginFetched& fetched) const {
    if (fetched.error.empty()) fetched.fingerprint = fingerprint(plugin);
  }

  void tell(std::vector<RelayOutcome> ended) {
    if (ended.empty()) return;
    const std::lock_guard lock(mutex);
    std::move(ended.begin(), ended.end(), std::back_inserter(outcomes));
    ring(outcomes_bell);
  }

  SystemClock clock;
  fs::path folder;
  RelayFolder files;
  RelayClient client;  // of the thread alone
  fs::path plugin;     // the one that is fetched; likewise
  std::string identity;
  FileDescriptor orders_bell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  FileDescriptor outcomes_bell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;  // of all that follows
  JoinToken token;
  std::string address;
  bool is_elsewhere = true;  // than the socket is connected to
  std::vector<Order> orders;
  std::vector<RelayOutcome> outcomes;
  bool ends = false;
  std::thread thread;
};

RelayLink::RelayLink(const JoinToken& token, const std::string& address,
                     const std::string& experiment_id, const std::string& mark)
    : keeper_(std::make_unique<Keeper>(token, address, experiment_id, mark)) {
  keeper_->thread = deaf_thread([keeper = keeper_.get()] { keeper->work(); });
}

RelayLink::~RelayLink() {
  {
    const std::lock_guard lock(keeper_->mutex);
    keeper_->ends = true;
  }
  ring(keeper_->orders_bell);
  keeper_->thread.join();
}

const fs::path& RelayLink::folder() const {
  return keeper_->folder;
}

void RelayLink::connect(const JoinToken& token, const std::string& address) {
  const std::lock_guard lock(keeper_->mutex);
  if (keeper_->token == token && keeper_->address == address) return;
  keeper_->token = token;
  keeper_->address = address;
  keeper_->is_elsewhere = true;
  ring(keeper_->orders_bell);
}

void RelayLink::order(Order order) {
  const std::lock_guard lock(keeper_->mutex);
  keeper_->orders.push_back(std::move(order));
  ring(keeper_->orders_bell);
}

fs::path RelayLink::fetch_plugin(const std::string& copy, const std::string& file_name) {
  fs::path plugin = folder() / kFetchedPlugin / file_name;
  order([keeper = keeper_.get(), copy, plugin](RelayClient& client, RelayClient::Time) {
    keeper->plugin = plugin;
    client.fetch_plugin(copy);
  });
  return plugin;
}

void RelayLink::remove(const std::string& folder) {
  order([keeper = keeper_.get(), folder](RelayClient&, RelayClient::Time) {
    keeper->files.remove(folder);
  });
}

void RelayLink::read_tail(const ReadTail& of, const fs::path& file) {
  order([keeper = keeper_.get(), of, file](RelayClient&, RelayClient::Time) {
    keeper->tell({RelayTail{of.trial, of.attempt, of.rank, own_tail(file, of.attempt)}});
  });
}

int RelayLink::descriptor() const {
  return keeper_->outcomes_bell.get();
}

std::vector<RelayOutcome> RelayLink::take_outcomes() {
  silence(keeper_->outcomes_bell);
  const std::lock_guard lock(keeper_->mutex);
  return std::exchange(keeper_->outcomes, {});
}

}  // namespace tune
