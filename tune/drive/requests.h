// Requests: what other commands of this user on this host ask a running driver (`tune drain`, `tune
// stop`), by the socket in its runtime folder. Most are answered at once. A user's orders are
// answered when the journal has them and the controller has decided: what was told to be done stays
// done, though this driver is killed.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/platform/request_socket.h"
#include "core/trial.h"
#include "core/value.h"
#include "tune/control/events.h"

namespace tune {

class DriverMachine;
class JournaledController;

class Requests {
 public:
  static constexpr std::size_t kMostOrders = 1000;       // without an answer
  static constexpr std::size_t kMostReasonBytes = 2000;  // of a reason, or of a note

  explicit Requests(const std::filesystem::path& runtime_directory)
      : socket_(runtime_directory / "requests") {}
  // Orders without an answer are refused: this driver ends.
  ~Requests();
  Requests(const Requests&) = delete;

  int descriptor() const { return socket_.descriptor(); }
  std::string path() const { return socket_.path().string(); }

  // Requests to do `what` are answered so. The answer is for the user; it may throw Error.
  using Answer = std::function<std::string(const Value& request)>;
  void answer_by(std::string what, Answer answer) { answers_[std::move(what)] = std::move(answer); }
  // The same for work beside the loop, which is answered when it is done.
  using Work = std::function<std::shared_future<std::string>(const Value& request)>;
  void answer_after(std::string what, Work work) { works_[std::move(what)] = std::move(work); }
  // Users' orders are of this experiment from now on, and go into the machine's turns.
  void take_orders(const JournaledController& experiment, std::string experiment_id,
                   DriverMachine& machine);
  // Answers what was asked since the last call.
  void look();
  void answer(const OrderAnswer& answer);

 private:
  void answer_what_is_done();
  // Nothing: it is answered later.
  std::optional<std::string> answer_to(const std::string& request);

  RequestSocket socket_;
  std::map<std::string, Answer> answers_;
  std::map<std::string, Work> works_;
  struct Awaited {
    RequestSocket::Asker asker;
    std::shared_future<std::string> answer;
  };
  std::vector<Awaited> awaited_;
  std::function<void(const Value& request, std::uint64_t ticket)> order_;
  std::uint64_t tickets_ = 0;
  std::map<std::uint64_t, RequestSocket::Asker> askers_;  // of orders, by ticket
};

bool is_order(const std::string& what);
// {"do": "pause", "trial": "3", "user": "ada", "reason": "..."} and its like as an order. Throws
// Error (kBadInput) for one that cannot be read, and for a trial that is not there, naming those
// that are.
UserOrdered order_of(const Value& request, const std::deque<Trial>& trials,
                     const std::string& experiment_id);

}  // namespace tune
