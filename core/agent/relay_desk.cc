#include "core/agent/relay_desk.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/spawn.h"

namespace tune {

void RelayDesk::on_request(Time now, const std::string& agent, const RelayRequest& request) {
  peers_[agent].heard = now;
  std::visit([&](const auto& said) { hear(now, agent, said); }, request);
}

void RelayDesk::answer(const std::string& agent, RelayAnswer answer) {
  answers_.emplace_back(agent, std::move(answer));
}

std::vector<std::pair<std::string, RelayAnswer>> RelayDesk::take_answers() {
  return std::exchange(answers_, {});
}

void RelayDesk::hear(Time, const std::string& agent, const RelayHello&) {
  answer(agent, RelayHello{});
}

RelayPlace RelayDesk::place_of(const OfferFolder& offered) const {
  const std::optional<std::uint32_t>& part = offered.share.part;
  return part ? part_place(experiment_id_, offered.folder, *part)
              : checkpoint_place(experiment_id_, offered.folder);
}

// ---- Checkpoints that come ----------------------------------------------------------------------

void RelayDesk::hear(Time now, const std::string& agent, const OfferFolder& offered) {
  Peer& peer = peers_[agent];
  if (peer.offer && peer.offer->said.number == offered.number) {  // it is said again
    peer.offer->heard = now;
    if (peer.offer->answer) answer(agent, *peer.offer->answer);
    return;
  }
  if (peer.offer) drop(*peer.offer);
  std::erase(waiting_, agent);
  Offer& offer = peer.offer.emplace();
  offer.said = offered;
  offer.heard = now;
  const std::string why = why_not_relayed(offered.files);
  if (!why.empty()) return end(agent, offer, why);
  if (!offered.share.joins.empty()) return join(agent, offer);
  waiting_.push_back(agent);
  begin_next(now);
}

// A group carries one checkpoint after the other: what an older one has left was given up.
void RelayDesk::remove_older_parts(const OfferFolder& offered) {
  const RelayPlace own = place_of(offered);
  const std::string trial = trial_id(experiment_id_, offered.folder.trial);
  const std::string part = fmt::format(".part-{}.", *offered.share.part);
  for (const std::string& name : files_.names(trial)) {
    const bool is_older = attempt_of_temporary(name) == offered.folder.attempt &&
                          name.find(part) != std::string::npos && trial + "/" + name != own.place;
    if (is_older) files_.remove(trial + "/" + name);
  }
}

// All parts of it are here.
void RelayDesk::join(const std::string& agent, Offer& offer) {
  std::vector<RelayPart> parts;
  for (const CheckpointPart& part : offer.said.share.joins) {
    parts.push_back({part_place(experiment_id_, offer.said.folder, part.node).place, part.host});
  }
  try {
    files_.join(place_of(offer.said), parts);
    end(agent, offer, {});
  } catch (const PartsDiffer& differing) {
    end(agent, offer, differing.what(), true);
  } catch (const Error& error) {
    end(agent, offer, error.what());
  }
}

void RelayDesk::begin_next(Time now) {
  while (pulls_ < kMaxPulls && !waiting_.empty()) {
    const std::string agent = std::move(waiting_.front());
    waiting_.pop_front();
    Offer& offer = *peers_.at(agent).offer;
    offer.pull.emplace(now, offer.said.number, std::move(offer.said.files));
    ++pulls_;
    if (offer.said.share.part) remove_older_parts(offer.said);
    try {
      files_.begin(place_of(offer.said), offer.pull->files());
    } catch (const Error& error) {
      end(agent, offer, error.what());
      continue;
    }
    ask(now, agent, offer);
  }
}

void RelayDesk::ask(Time now, const std::string& agent, Offer& offer) {
  for (const WantPiece& wanted : offer.pull->wants(now)) answer(agent, wanted);
  if (offer.pull->is_complete()) commit(agent, offer);
}

void RelayDesk::commit(const std::string& agent, Offer& offer) {
  try {
    files_.commit(place_of(offer.said), offer.pull->files());
    end(agent, offer, {});
  } catch (const Error& error) {
    end(agent, offer, error.what());
  }
}

void RelayDesk::hear(Time now, const std::string& agent, const RelayPiece& piece) {
  Peer& peer = peers_[agent];
  if (!peer.offer || !peer.offer->pull || peer.offer->said.number != piece.number) return;
  Offer& offer = *peer.offer;
  offer.heard = now;
  if (!piece.error.empty()) {
    end(agent, offer, piece.error);
  } else if (offer.pull->take(now, piece)) {
    try {
      files_.write(place_of(offer.said).temporary + "/" + offer.pull->files()[piece.file].path,
                   piece.offset, piece.bytes.bytes);
      ask(now, agent, offer);
    } catch (const Error& error) {
      end(agent, offer, error.what());
    }
  }
  begin_next(now);
}

void RelayDesk::end(const std::string& agent, Offer& offer, const std::string& error,
                    bool is_of_trial) {
  if (!error.empty()) {
    drop(offer);
  } else if (offer.pull) {
    offer.pull.reset();
    --pulls_;
  }
  offer.said.files.clear();
  offer.answer = FolderStored{offer.said.number, error, is_of_trial};
  answer(agent, *offer.answer);
}

// Nothing of it stays.
void RelayDesk::drop(Offer& offer) {
  if (!offer.pull) return;
  offer.pull.reset();
  --pulls_;
  files_.remove(place_of(offer.said).temporary);
}

// ---- Checkpoints and the plugin, which go -------------------------------------------------------

std::string RelayDesk::folder_of(const FetchFolder& fetch) const {
  if (fetch.plugin.empty()) return checkpoint_place(experiment_id_, fetch.folder).place;
  if (is_plugin_copy(fetch.plugin)) return fetch.plugin;
  throw Error(ErrorCode::kBadInput, fmt::format("{} holds no plugin", fetch.plugin));
}

void RelayDesk::hear(Time, const std::string& agent, const FetchFolder& fetch) {
  Peer& peer = peers_[agent];
  if (!peer.fetch || peer.fetch->number != fetch.number) {
    peer.found = {fetch.number, {}, {}};
    try {
      peer.found.files = files_.list(folder_of(fetch));
    } catch (const Error& error) {
      peer.found.error = error.what();
    }
    peer.fetch = fetch;
  }
  answer(agent, peer.found);
}

void RelayDesk::hear(Time, const std::string& agent, const WantPiece& wanted) {
  const Peer& peer = peers_[agent];
  if (!peer.fetch || peer.fetch->number != wanted.number) return;  // it will fetch again
  if (wanted.file >= peer.found.files.size()) return;
  const RelayFile& file = peer.found.files[wanted.file];
  RelayPiece piece{wanted.number, wanted.file, wanted.offset, {}, {}};
  try {
    piece.bytes.bytes = files_.read(folder_of(*peer.fetch) + "/" + file.path, wanted.offset,
                                    piece_bytes(file, wanted.offset));
  } catch (const Error& error) {
    piece.error = error.what();
  }
  answer(agent, std::move(piece));
}

// ---- Output -------------------------------------------------------------------------------------

namespace {

bool is_output(const std::string& name) {
  if (name == kUsageFile) return true;
  return (name.starts_with("stdout") || name.starts_with("stderr")) && name.size() < 32 &&
         name.find('/') == std::string::npos;
}

}  // namespace

void RelayDesk::hear(Time, const std::string& agent, const RelayOutput& output) {
  OutputTaken taken{output.number, 0, {}};
  if (!is_output(output.name)) {
    taken.error = "it is not the output of a trial: " + output.name;
    return answer(agent, std::move(taken));
  }
  try {
    taken.size = files_.append(trial_id(experiment_id_, output.trial) + "/" + output.name,
                               output.after, output.bytes.bytes);
  } catch (const Error& error) {
    taken.error = error.what();
  }
  answer(agent, std::move(taken));
}

// ---- Time ---------------------------------------------------------------------------------------

void RelayDesk::on_time(Time now) {
  for (auto at = peers_.begin(); at != peers_.end();) {
    auto& [agent, peer] = *at;
    const bool is_open = peer.offer && !peer.offer->answer;
    if (is_open && now - peer.offer->heard >= kSilence) {  // it offers it again when it is back
      drop(*peer.offer);
      std::erase(waiting_, agent);
      peer.offer.reset();
    } else if (peer.offer && peer.offer->pull) {
      ask(now, agent, *peer.offer);
    }
    at = now - peer.heard >= kForgotten ? peers_.erase(at) : std::next(at);
  }
  begin_next(now);
}

}  // namespace tune
