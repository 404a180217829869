#include "core/agent/driver_search.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/platform/join_keys.h"

namespace tune {

namespace fs = std::filesystem;

DriverSearch::DriverSearch(const JoinOptions& join, AgentTime now, bool sees_folder)
    : join_(join),
      sees_folder_(sees_folder),
      tokens_(join.token),
      find_until_(now + join.patience) {}

// ---- Tokens -------------------------------------------------------------------------------------

std::optional<JoinToken> TokenChoice::next(AgentTime now, const std::vector<JoinToken>& found) {
  std::vector<JoinToken> all = found;
  if (first_.join_key == current_.join_key) all.push_back(first_);  // else it is no longer good
  for (const JoinToken& token : found) {
    const bool is_new = std::ranges::find(known_, token) == known_.end();
    if (is_new) return token;
  }
  if (now - taken_ < kTryEach) return std::nullopt;
  const auto current = std::ranges::find(all, current_);
  const auto after = current == all.end() ? all.begin() : std::next(current);
  std::ranges::rotate(all, after);
  const auto other = std::ranges::find_if(all, [&](const auto& one) { return one != current_; });
  return other == all.end() ? std::nullopt : std::optional(*other);
}

void TokenChoice::take(AgentTime now, const JoinToken& token) {
  current_ = token;
  taken_ = now;
  known_.push_back(token);
}

// ---- Drivers ------------------------------------------------------------------------------------

void DriverSearch::look(AgentTime now, const Parts& parts) {
  const std::uint64_t epoch = parts.endpoint.driver_epoch();
  if (epoch != epoch_) {
    epoch_ = epoch;
    parts.machine.on_other_driver(now, epoch);
  }
  const AgentTime heard = parts.endpoint.last_heard();
  if (heard != AgentTime{}) parts.machine.on_driver_heard(heard);
  if (parts.endpoint.other_driver() != another_) look_at_another(now, parts);
  if (find_until_) return look_for_first(now, parts.endpoint);
  if (parts.endpoint.is_of_other_version()) {
    parts.machine.on_refused(now, parts.endpoint.refusal());
  }
  if (found_) take_found(now, parts);
  if (now - heard > kSilence && now - looked_ > kLookEvery && !looks_) look_at_files(now, parts);
}

void DriverSearch::look_for_first(AgentTime now, const AgentEndpoint& endpoint) {
  if (!endpoint.refusal().empty()) {
    failure_ = endpoint.refusal();
  } else if (now >= *find_until_) {
    failure_ = fmt::format("{} within {:.0f} s", endpoint.why_not_connected(),
                           std::chrono::duration<double>(join_.patience).count());
  }
}

// Of one that shares its keys and listens where the driver of this one did.
void DriverSearch::look_at_another(AgentTime now, const Parts& parts) {
  another_ = parts.endpoint.other_driver();
  if (another_.empty()) return;
  const bool is_kept = parts.machine.on_other_experiment(now);
  if (!is_kept || !join_.say) return;
  join_.say(
      fmt::format("another experiment listens at {}: trials are kept, and their own driver is "
                  "waited for, {:.0f} s in all",
                  parts.endpoint.address(), seconds(setup_.patience)));
}

bool DriverSearch::on_found(const SetupExperiment& setup) {
  experiment_ = setup.experiment_directory;
  setup_ = setup.joined;
  return std::exchange(find_until_, std::nullopt).has_value();
}

// It reaches its driver at the addresses that it has, which may lead through a tunnel: these stay.
void DriverSearch::take_token(AgentTime now, const std::string& text, const Parts& parts) try {
  JoinToken fresh = token_of_text(text);
  if (fresh.join_key == token().join_key) return;
  std::vector<std::string> addresses = token().addresses;
  for (std::string& address : fresh.addresses) {
    const bool is_new = std::ranges::find(addresses, address) == addresses.end();
    if (is_new) addresses.push_back(std::move(address));
  }
  fresh.addresses = std::move(addresses);
  connect_by(now, fresh, parts.endpoint);
} catch (const Error& error) {
  parts.endpoint.send(Warning{error.what()});
}

void DriverSearch::connect_by(AgentTime now, const JoinToken& token, AgentEndpoint& endpoint) try {
  tokens_.take(now, token);
  endpoint.join_by(token);
} catch (const std::exception& error) {  // one that cannot be reached from here
  endpoint.send(Warning{error.what()});
}

// That the join file is gone says something only where the folder is there.
void DriverSearch::look_at_files(AgentTime now, const Parts& parts) {
  if (setup_.join_file.empty()) return;
  looked_ = now;
  looks_ = true;
  parts.files.give([this, token = token(), join_file = experiment_ / setup_.join_file,
                    proof = experiment_ / setup_.proof_file, is_seen = sees_folder_,
                    may_be_seen = may_see_folder_, own = join_.file]() -> FileWorker::Outcome {
    std::error_code unknown;
    const bool may_tell = is_seen || (may_be_seen && fs::exists(proof, unknown));
    const bool is_over = may_tell && !unknown && !fs::exists(join_file, unknown) && !unknown;
    std::vector<fs::path> files = {join_file};
    if (!own.empty()) files.emplace_back(own);
    return [this, found = Found{tokens_in(files, token), is_over}] {
      looks_ = false;
      found_ = found;
    };
  });
}

void DriverSearch::take_found(AgentTime now, const Parts& parts) {
  const Found found = *std::exchange(found_, std::nullopt);
  if (found.is_over) return parts.machine.on_experiment_over(now);
  const auto next = tokens_.next(now, found.tokens);
  if (next) connect_by(now, *next, parts.endpoint);
}

std::vector<JoinToken> DriverSearch::tokens_in(const std::vector<fs::path>& files,
                                               const JoinToken& own) {
  std::vector<JoinToken> found;
  for (const fs::path& file : files) {
    try {
      JoinToken token = read_token(file);
      // A token for several experiments names none of them.
      if (token.experiment != own.experiment && token.driver_key != own.driver_key) continue;
      found.push_back(std::move(token));
    } catch (const Error&) {  // it is not there, is being replaced, or is not a token
    }
  }
  return found;
}

}  // namespace tune
