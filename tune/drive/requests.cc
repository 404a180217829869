#include "tune/drive/requests.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"
#include "tune/drive/driver_machine.h"
#include "tune/drive/journaled_controller.h"

namespace tune {

namespace {

// By OrderKind.
constexpr const char* kOrders[] = {"stop", "pause", "unpause", "retry", "add", "note", "change"};

std::string complaint_text(const std::string& text) {
  return to_json(Value{{"error", text}});
}

std::string success_text(const std::string& text) {
  return to_json(Value{{"done", text}});
}

// By its id, its number, or the end of its id: as the commands that read folders take it.
TrialNumber trial_meant(const std::string& text, const std::deque<Trial>& trials,
                        const std::string& experiment_id) {
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const char* begin = text.data() + (text.find('_') == text.npos ? 0 : text.find('_') + 1);
  const auto [stop, error] = std::from_chars(begin, end, number);
  const bool is_read = error == std::errc() && stop == end && begin != end;
  const bool is_of_here = begin == text.data() || trial_id(experiment_id, {number}) == text ||
                          text == fmt::format("_{:05}", number);
  if (is_read && is_of_here && number < trials.size()) return {number};
  const std::string there = trials.empty()
                                ? "there are none yet"
                                : fmt::format("there are {} to {}", trial_id(experiment_id, {0}),
                                              trial_id(experiment_id, trials.back().number));
  throw Error(ErrorCode::kBadInput, fmt::format("there is no trial '{}': {}", text, there));
}

std::string bounded_text(const Value& request, const char* key) {
  std::string text = request.get_or(key, "");
  if (text.size() <= Requests::kMostReasonBytes) return text;
  throw Error(ErrorCode::kBadInput, fmt::format("{}: {} bytes, at most {} are kept", key,
                                                text.size(), Requests::kMostReasonBytes));
}

// Machines are known where they may join.
std::string why_not(const std::string& what) {
  const bool is_of_machines = what == "drain" || what == "rotate" || what == "pool";
  return fmt::format(
      "this driver cannot {}{}", what,
      is_of_machines ? ": it was started without --listen or a pool, so no machine joins it" : "");
}

}  // namespace

Requests::~Requests() {
  const std::string text = complaint_text("the driver ends, and has not done it");
  for (const auto& [ticket, asker] : askers_) socket_.answer(asker, text);
  for (const Awaited& one : awaited_) socket_.answer(one.asker, text);
}

void Requests::take_orders(const JournaledController& experiment, std::string experiment_id,
                           DriverMachine& machine) {
  order_ = [&experiment, id = std::move(experiment_id), &machine](const Value& request,
                                                                  std::uint64_t ticket) {
    if (machine.store_is_silent()) {
      throw Error(ErrorCode::kStore, "the store does not answer now: give the order again later");
    }
    UserOrdered order = order_of(request, experiment.controller().trials(), id);
    order.ticket = ticket;
    machine.on_order(std::move(order));
  };
}

void Requests::look() {
  while (const auto request = socket_.take()) {
    if (const auto answer = answer_to(*request)) socket_.answer(*answer);
  }
  answer_what_is_done();
}

void Requests::answer_what_is_done() {
  std::erase_if(awaited_, [this](const Awaited& one) {
    if (one.answer.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    try {
      socket_.answer(one.asker, success_text(one.answer.get()));
    } catch (const Error& error) {
      socket_.answer(one.asker, complaint_text(error.what()));
    }
    return true;
  });
}

std::optional<std::string> Requests::answer_to(const std::string& request) try {
  const Value asked = parse_json(request, "a request");
  const auto what = asked.get<std::string>("do");
  if (const auto found = answers_.find(what); found != answers_.end()) {
    return success_text(found->second(asked));
  }
  if (const auto work = works_.find(what); work != works_.end()) {
    std::shared_future<std::string> answer = work->second(asked);
    awaited_.push_back({socket_.asker(), std::move(answer)});
    return std::nullopt;
  }
  if (!is_order(what) || !order_) return complaint_text(why_not(what));
  if (askers_.size() >= kMostOrders) {
    return complaint_text(fmt::format("{} orders wait already", askers_.size()));
  }
  order_(asked, ++tickets_);
  askers_[tickets_] = socket_.asker();
  return std::nullopt;
} catch (const Error& error) {
  return complaint_text(error.what());
}

// An order of an older driver has no asker here.
void Requests::answer(const OrderAnswer& answer) {
  const auto asker = askers_.extract(answer.ticket);
  if (asker.empty()) return;
  socket_.answer(asker.mapped(),
                 answer.is_done ? success_text(answer.text) : complaint_text(answer.text));
}

bool is_order(const std::string& what) {
  return std::ranges::find(kOrders, what) != std::end(kOrders);
}

UserOrdered order_of(const Value& request, const std::deque<Trial>& trials,
                     const std::string& experiment_id) {
  const auto what = request.get<std::string>("do");
  const auto* const name = std::ranges::find(kOrders, what);
  if (name == std::end(kOrders)) {
    throw Error(ErrorCode::kBadInput, fmt::format("there is no order '{}'", what));
  }
  UserOrdered order;
  order.kind = static_cast<OrderKind>(name - std::begin(kOrders));
  order.user = request.get<std::string>("user");
  order.text = bounded_text(request, "reason");
  switch (order.kind) {
    case OrderKind::kAdd:
      if (!request.contains("config") || !request.at("config").is_map()) {
        throw Error(ErrorCode::kBadInput,
                    "adding a configuration: it has to be a map, as in {lr: 0.1}");
      }
      order.config = pack(request.at("config"));
      return order;
    case OrderKind::kNumSamples:
      order.num_samples = request.get<std::int64_t>("num_samples");
      return order;
    case OrderKind::kNote:
      order.text = bounded_text(request, "text");
      if (order.text.empty()) throw Error(ErrorCode::kBadInput, "a note has to say something");
      break;
    default:
      break;
  }
  order.trial = trial_meant(request.get<std::string>("trial"), trials, experiment_id);
  return order;
}

}  // namespace tune
