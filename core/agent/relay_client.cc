#include "core/agent/relay_client.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/spawn.h"

namespace tune {

RelayPlace checkpoint_place(const std::string& experiment_id, const CheckpointOrigin& checkpoint) {
  const std::string folder = trial_id(experiment_id, checkpoint.trial) + "/";
  return {folder + temporary_checkpoint_name(checkpoint.iteration, checkpoint.attempt),
          folder + checkpoint_name(checkpoint.iteration, checkpoint.attempt),
          folder + replaced_checkpoint_name(checkpoint.attempt)};
}

RelayPlace part_place(const std::string& experiment_id, const CheckpointOrigin& checkpoint,
                      std::uint32_t node) {
  const std::string folder = trial_id(experiment_id, checkpoint.trial) + "/";
  return {folder + incoming_part_name(checkpoint.iteration, checkpoint.attempt, node),
          folder + checkpoint_part_name(checkpoint.iteration, checkpoint.attempt, node),
          folder + replaced_checkpoint_name(checkpoint.attempt)};
}

PartsDiffer::PartsDiffer(const std::string& host, const std::string& path)
    : Error(ErrorCode::kIo,
            fmt::format("node {} of its group has written another file {} than a node before it: "
                        "let one rank write it, or each rank a file of its own name",
                        host, path)) {}

RelayPlace restored_place(const std::string& experiment_id, TrialNumber trial,
                          AttemptNumber attempt, std::uint32_t node) {
  std::string name = fmt::format("{}/.restored-{}", trial_id(experiment_id, trial), attempt.value);
  if (node > 0) name += fmt::format(".{}", node);
  return {name + ".tmp", name, name + ".old"};
}

std::size_t already_there(std::string_view end, std::string_view bytes) {
  return end.size() <= bytes.size() && bytes.starts_with(end) ? end.size() : 0;
}

// ---- Checkpoints to the experiment's folder -----------------------------------------------------

void RelayClient::store(const CheckpointSaved& saved, CheckpointShare share) {
  const Order order{saved, std::move(share)};
  if (is_given_up_) return drop(order, kNoDriver);
  const auto older = std::ranges::find_if(waiting_, [&](const Order& one) {
    return one.saved.trial == saved.trial && one.saved.attempt == saved.attempt;
  });
  if (older == waiting_.end()) return waiting_.push_back(order);
  remove_own(*older);
  end(RelayStored{older->saved, "", true});
  *older = order;
}

// Here it stands under its name; the part of a group's where its ranks have written it.
std::string RelayClient::own_folder(const Order& order) const {
  const RelayPlace place = place_of(order.saved);
  return order.share.is_all() ? place.place : place.temporary;
}

void RelayClient::remove_own(const Order& order) {
  if (order.share.joins.empty()) files_.remove(own_folder(order));
}

void RelayClient::offer(Time now) {
  if (!store_ && !waiting_.empty()) {
    store_ = Store{waiting_.front(), {}, 0, now};
    waiting_.pop_front();
  }
  if (!store_ || now < store_->next) return;
  if (store_->offer.number == 0) {
    const CheckpointSaved& saved = store_->order.saved;
    const CheckpointShare& share = store_->order.share;
    try {
      store_->offer = {++last_number_, {saved.trial, saved.iteration, saved.attempt}, {}, share};
      if (share.joins.empty()) store_->offer.files = files_.list(own_folder(store_->order));
    } catch (const Error& error) {
      return end_store(error.what());
    }
    const std::string why = why_not_relayed(store_->offer.files);
    if (!why.empty()) return end_store(why);
  }
  store_->next = now + kAgain;
  say(store_->offer);
}

void RelayClient::hear(Time, const WantPiece& wanted) {
  if (!store_ || store_->offer.number != wanted.number) return;
  if (wanted.file >= store_->offer.files.size()) return;
  const RelayFile& file = store_->offer.files[wanted.file];
  RelayPiece piece{wanted.number, wanted.file, wanted.offset, {}, {}};
  try {
    piece.bytes.bytes = files_.read(own_folder(store_->order) + "/" + file.path, wanted.offset,
                                    piece_bytes(file, wanted.offset));
  } catch (const Error& error) {
    piece.error = error.what();
  }
  say(std::move(piece));
}

void RelayClient::hear(Time now, const FolderStored& stored) {
  if (!store_ || store_->offer.number != stored.number) return;
  if (stored.error.empty()) return end_store({});
  if (stored.is_of_trial || ++store_->tries == kTries) {
    return end_store(stored.error, false, stored.is_of_trial);
  }
  notice(fmt::format("storing a checkpoint of {}: {}; it is tried again",
                     trial_folder(store_->order.saved.trial), stored.error));
  store_->offer.number = 0;  // as something new
  store_->next = now + std::chrono::seconds(1 << (store_->tries - 1));
}

void RelayClient::end_store(const std::string& error, bool is_newer, bool is_of_trial) {
  const auto& [saved, share] = store_->order;
  if (error.empty() && !is_newer && share.is_all()) {
    kept_.keep({saved.trial, saved.iteration, saved.attempt});
  } else {
    remove_own(store_->order);
  }
  end(RelayStored{saved, error, is_newer, is_of_trial});
  store_.reset();
}

void RelayClient::give_up(TrialNumber trial, AttemptNumber attempt) {
  const auto is_of = [&](const Order& order) {
    return order.saved.trial == trial && order.saved.attempt == attempt;
  };
  const std::string why = "its attempt has ended";
  if (store_ && is_of(store_->order)) end_store(why);
  std::erase_if(waiting_, [&](const Order& order) {
    if (!is_of(order)) return false;
    drop(order, why);
    return true;
  });
  const auto is_for = [&](const Fetch& fetch) {
    return fetch.trial == trial && fetch.attempt == attempt;
  };
  if (fetch_ && is_for(*fetch_)) end_fetch(why);
  if (std::erase_if(fetches_, is_for) > 0) end(RelayFetched{trial, attempt, why, false});
}

void RelayClient::drop(const Order& order, const std::string& why) {
  remove_own(order);
  end(RelayStored{order.saved, why, false});
}

void RelayClient::give_up_all() {
  is_given_up_ = true;
  if (store_) end_store(kNoDriver);
  for (const Order& order : waiting_) drop(order, kNoDriver);
  waiting_.clear();
  if (fetch_) end_fetch(kNoDriver);
  for (const Fetch& fetch : fetches_) end(fetch, kNoDriver);
  fetches_.clear();
  for (auto& [trial, output] : outputs_) {
    for (const auto& [attempt, until] : output.finishing) {
      end(RelayOutputDone{trial, attempt});
    }
  }
  outputs_.clear();
}

// ---- Checkpoints from there ---------------------------------------------------------------------

void RelayClient::fetch(TrialNumber trial, AttemptNumber attempt,
                        const CheckpointOrigin& checkpoint, std::uint32_t node) {
  if (is_given_up_) return end(RelayFetched{trial, attempt, kNoDriver, false});
  const RelayPlace place = restored_place(experiment_id_, trial, attempt, node);
  if (kept_.give(trial, checkpoint, place)) return end(RelayFetched{trial, attempt, {}, false});
  fetches_.push_back({trial, attempt, {++last_number_, checkpoint}, place, {}, {}});
}

void RelayClient::fetch_plugin(const std::string& copy) {
  if (is_given_up_) return end(RelayPluginFetched{kNoDriver});
  const std::string name = kFetchedPlugin;
  fetches_.push_back(
      {{}, {}, {++last_number_, {}, copy}, {name + ".tmp", name, name + ".old"}, {}, {}});
}

void RelayClient::ask(Time now) {
  if (!fetch_ && !fetches_.empty()) {
    fetch_ = std::move(fetches_.front());
    fetches_.pop_front();
  }
  if (!fetch_) return;
  const bool is_silent = fetch_->pull && now - fetch_->pull->last_heard() >= kAgain;
  if ((!fetch_->pull || is_silent) && now >= fetch_->next) {
    fetch_->next = now + kAgain;
    say(fetch_->said);  // a driver that has come meanwhile does not know it
  }
  if (!fetch_->pull) return;
  for (const WantPiece& wanted : fetch_->pull->wants(now)) say(wanted);
  if (!fetch_->pull->is_complete()) return;
  try {
    files_.commit(fetch_->place, fetch_->pull->files());
    end_fetch({});
  } catch (const Error& error) {
    end_fetch(error.what(), true);
  }
}

void RelayClient::hear(Time now, const FolderFound& found) {
  if (!fetch_ || fetch_->said.number != found.number) return;
  if (fetch_->pull && fetch_->pull->files() == found.files) return;  // it was asked again
  std::string error = found.error.empty() ? why_not_relayed(found.files) : found.error;
  if (!error.empty()) return end_fetch(error);
  fetch_->pull.emplace(now, found.number, found.files);
  try {
    files_.begin(fetch_->place, found.files);
  } catch (const Error& refused) {
    return end_fetch(refused.what(), true);
  }
  ask(now);
}

void RelayClient::hear(Time now, const RelayPiece& piece) {
  if (!fetch_ || !fetch_->pull || fetch_->said.number != piece.number) return;
  if (!piece.error.empty()) return end_fetch(piece.error);
  if (!fetch_->pull->take(now, piece)) return;
  try {
    files_.write(fetch_->place.temporary + "/" + fetch_->pull->files()[piece.file].path,
                 piece.offset, piece.bytes.bytes);
  } catch (const Error& error) {
    return end_fetch(error.what(), true);
  }
  ask(now);
}

void RelayClient::end_fetch(const std::string& error, bool is_of_agent) {
  if (!error.empty()) files_.remove(fetch_->place.temporary);
  end(*fetch_, error, is_of_agent);
  fetch_.reset();
}

void RelayClient::end(const Fetch& fetch, const std::string& error, bool is_of_agent) {
  if (!fetch.said.plugin.empty()) return end(RelayPluginFetched{error});
  end(RelayFetched{fetch.trial, fetch.attempt, error, is_of_agent});
}

// ---- Output -------------------------------------------------------------------------------------

void RelayClient::follow(TrialNumber trial, std::uint32_t ranks, std::uint32_t first_rank) {
  if (is_given_up_) return;
  Output& output = outputs_[trial];
  ++output.attempts;
  const auto follow_file = [&output](const std::string& name) {
    Stream& stream = output.streams[name];
    if (stream.asked.number == 0) stream.after.reset();  // others may have written meanwhile
  };
  for (std::uint32_t rank = first_rank; rank < first_rank + ranks; ++rank) {
    for (const char* name : {"stdout", "stderr"}) follow_file(rank_file_name(name, rank));
  }
  follow_file(kUsageFile);
}

void RelayClient::finish_output(Time now, TrialNumber trial, AttemptNumber attempt) {
  Output& output = outputs_[trial];
  if (output.attempts == 0 || is_given_up_) return end(RelayOutputDone{trial, attempt});
  output.finishing.emplace_back(attempt, now + kOutputGrace);
  for (auto& [name, stream] : output.streams) stream.next = std::min(stream.next, now);
}

// True: all of its attempts are over, and all that they have written has come.
bool RelayClient::look(Time now, TrialNumber trial, Output& output) {
  for (auto& [name, stream] : output.streams) {
    if (now >= stream.next) send_output(now, trial, name, stream);
  }
  if (output.finishing.empty()) return false;
  const bool is_done = std::ranges::all_of(
      output.streams, [&](const auto& one) { return has_come(trial, one.first, one.second); });
  std::erase_if(output.finishing, [&](const auto& finishing) {
    if (!is_done && now < finishing.second) return false;
    end(RelayOutputDone{trial, finishing.first});
    --output.attempts;
    return true;
  });
  if (output.attempts == 0) tell_of_rest(trial, output);
  return is_done && output.attempts == 0;
}

bool RelayClient::has_come(TrialNumber trial, const std::string& name, const Stream& stream) {
  return stream.asked.number == 0 && files_.size(trial_folder(trial) + "/" + name) <= stream.sent;
}

// Of trials that are over nothing is kept: an agent may see a hundred thousand of them. One that
// comes back begins new files.
void RelayClient::forget(TrialNumber trial) {
  for (const auto& [name, stream] : outputs_.at(trial).streams) {
    files_.remove(trial_folder(trial) + "/" + name);
  }
  outputs_.erase(trial);
}

void RelayClient::tell_of_rest(TrialNumber trial, const Output& output) {
  if (rest_is_told_) return;
  for (const std::string& name : files_.names(trial_folder(trial))) {
    const bool is_carried = output.streams.contains(name) || checkpoint_of_name(name);
    if (is_carried || name.starts_with('.')) continue;
    rest_is_told_ = true;
    return notice(fmt::format(
        "{}/{} stays on this machine and goes with its agent: of a trial's folder checkpoints, "
        "stdout and stderr come to the experiment's folder; share that one with this machine to "
        "keep other files",
        trial_folder(trial), name));
  }
}

void RelayClient::send_output(Time now, TrialNumber trial, const std::string& name,
                              Stream& stream) {
  stream.next = now + kLook;
  if (stream.asked.number != 0) {
    stream.next = now + kAgain;
    return say(stream.asked);
  }
  const std::string file = trial_folder(trial) + "/" + name;
  try {
    const std::uint64_t size = files_.size(file);
    if (size <= stream.sent) return;
    RelayOutput next{++last_number_, trial, name, stream.after, {}};
    stream.carries = 0;
    if (stream.after && size - stream.sent > kOutputBehind) {
      const std::uint64_t left_out = size - stream.sent - kOutputKept;
      stream.carries = left_out;
      next.bytes.bytes = fmt::format("\n[{} bytes of output are left out here]\n", left_out);
    } else if (stream.after) {
      next.bytes.bytes = files_.read(
          file, stream.sent, std::min<std::uint64_t>(size - stream.sent, kRelayOutputBytes));
      // Other nodes of a group append to the same file.
      const std::size_t end = name == kUsageFile ? next.bytes.bytes.rfind('\n') : std::string::npos;
      if (end != std::string::npos) next.bytes.bytes.resize(end + 1);
      stream.carries = next.bytes.bytes.size();
    }
    stream.asked = std::move(next);
  } catch (const Error& error) {
    notice(fmt::format("reading the output of {}: {}", trial_folder(trial), error.what()));
    return;
  }
  stream.next = now + kAgain;
  say(stream.asked);
}

void RelayClient::hear(Time now, const OutputTaken& taken) {
  for (auto& [trial, output] : outputs_) {
    for (auto& [name, stream] : output.streams) {
      if (stream.asked.number != taken.number) continue;
      if (!taken.error.empty()) {
        notice(fmt::format("storing the output of {}: {}; it is left out", trial_folder(trial),
                           taken.error));
      }
      stream.sent += stream.carries;
      stream.after = taken.size;
      if (!taken.error.empty()) stream.after.reset();
      stream.asked = {};
      stream.next = taken.error.empty() ? now : now + kAgain;
      if (look(now, trial, output)) forget(TrialNumber(trial));
      return;
    }
  }
}

// ---- Both ---------------------------------------------------------------------------------------

void RelayClient::notice(const std::string& text) {
  if (std::ranges::find(told_, text) != told_.end() || told_.size() >= 20) return;
  told_.push_back(text);
  end(RelayNotice{text});
}

void RelayClient::hear(Time, const RelayHello&) {
  if (!std::exchange(greets_, false)) return;
  end(RelayReached{});
}

void RelayClient::on_answer(Time now, const RelayAnswer& answer) {
  unheard_since_.reset();
  std::visit([&](const auto& said) { hear(now, said); }, answer);
  offer(now);
  ask(now);
}

bool RelayClient::waits_for_answer() const {
  const bool waits_for_output = std::ranges::any_of(outputs_, [](const auto& output) {
    return std::ranges::any_of(output.second.streams,
                               [](const auto& one) { return one.second.asked.number != 0; });
  });
  return greets_ || store_ || fetch_ || waits_for_output;
}

void RelayClient::on_time(Time now) {
  if (greets_ && now >= greet_at_) {
    greet_at_ = now + kAgain;
    say(RelayHello{});
  }
  offer(now);
  ask(now);
  std::vector<TrialNumber> over;
  for (auto& [trial, output] : outputs_) {
    if (output.attempts > 0 && look(now, trial, output)) over.push_back(trial);
  }
  for (const TrialNumber trial : over) forget(trial);
  if (!waits_for_answer()) unheard_since_.reset();
  if (requests_.empty()) return;
  if (!unheard_since_) unheard_since_ = now;
  if (now - *unheard_since_ < kStands) return;
  notice("the driver's folder is not reached: checkpoints and output wait on this machine");
}

}  // namespace tune
