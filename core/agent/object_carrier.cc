#include "core/agent/object_carrier.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/sha256.h"
#include "core/spawn.h"

namespace tune {

using Kind = ObjectError::Kind;

namespace {

constexpr std::uint64_t kMostTold = 10;  // outages

bool is_same_attempt(const CheckpointSaved& one, const CheckpointSaved& other) {
  return one.trial == other.trial && one.attempt == other.attempt;
}

}  // namespace

std::string ObjectCarrier::folder_of(const CheckpointOrigin& checkpoint) const {
  return checkpoint_place(experiment_id_, checkpoint).place;
}

RelayPlace ObjectCarrier::place_of(const Download& download) const {
  return restored_place(experiment_id_, download.trial, download.attempt, download.node);
}

// ---- Orders -------------------------------------------------------------------------------------

void ObjectCarrier::store(const CheckpointSaved& saved, CheckpointShare share) {
  const Order order{saved, std::move(share)};
  if (is_given_up_) return drop(order, kNoDriver);
  // Nothing of the older one arrives now, so the newer one takes its place.
  if (failing_since_ && upload_ && is_same_attempt(upload_->order.saved, saved)) {
    end_upload("", true);
  }
  const auto older = std::ranges::find_if(
      waiting_, [&](const Order& one) { return is_same_attempt(one.saved, saved); });
  if (older == waiting_.end()) return waiting_.push_back(order);
  remove_own(*older);
  outcomes_.emplace_back(RelayStored{older->saved, "", true});
  *older = order;
}

void ObjectCarrier::fetch(TrialNumber trial, AttemptNumber attempt,
                          const CheckpointOrigin& checkpoint, std::uint32_t node) {
  if (is_given_up_) {
    outcomes_.emplace_back(RelayFetched{trial, attempt, kNoDriver, false});
    return;
  }
  if (kept_.give(trial, checkpoint, restored_place(experiment_id_, trial, attempt, node))) {
    outcomes_.emplace_back(RelayFetched{trial, attempt, "", false});
    return;
  }
  fetches_.push_back({trial, attempt, checkpoint, node, {}, {}, 0, {}});
}

void ObjectCarrier::give_up(TrialNumber trial, AttemptNumber attempt) {
  const auto is_of = [&](const auto& one) { return one.trial == trial && one.attempt == attempt; };
  const std::string why = "its attempt has ended";
  if (upload_ && is_of(upload_->order.saved)) end_upload(why);
  std::erase_if(waiting_, [&](const Order& order) {
    if (!is_of(order.saved)) return false;
    drop(order, why);
    return true;
  });
  if (download_ && is_of(*download_)) end_download(why);
  if (std::erase_if(fetches_, is_of) > 0) {
    outcomes_.emplace_back(RelayFetched{trial, attempt, why, false});
  }
}

void ObjectCarrier::give_up_all() {
  is_given_up_ = true;
  if (upload_) end_upload(kNoDriver);
  for (const Order& order : waiting_) drop(order, kNoDriver);
  waiting_.clear();
  if (download_) end_download(kNoDriver);
  for (const Download& fetch : fetches_) {
    outcomes_.emplace_back(RelayFetched{fetch.trial, fetch.attempt, kNoDriver, false});
  }
  fetches_.clear();
}

void ObjectCarrier::drop(const Order& order, const std::string& why) {
  remove_own(order);
  outcomes_.emplace_back(RelayStored{order.saved, why, false});
}

// ---- Requests -----------------------------------------------------------------------------------

ObjectCarrier::Time ObjectCarrier::next_look(Time now) const {
  return std::max(now, quiet_until_);
}

// A trial that waits for its checkpoint goes first: others train meanwhile.
void ObjectCarrier::on_time(Time now) {
  if (now < quiet_until_ || is_idle()) return;
  try {
    if (!proof_.empty()) {
      step_proof();
    } else if (has_fetch()) {
      step_download();
    } else {
      step_upload();
    }
  } catch (const ObjectError& error) {
    return has_failed(now, error);
  }
  if (is_told_) notice("the object store answers again");
  failing_since_.reset();
  pause_ = {};
  is_told_ = false;
}

void ObjectCarrier::step_proof() {
  tune::prove(store_, proof_);
  proof_.clear();
  outcomes_.emplace_back(RelayReached{});
}

void ObjectCarrier::has_failed(Time now, const ObjectError& error) {
  if (!proof_.empty()) {
    if (error.kind() == Kind::kAway) return outage(now, error);
    proof_.clear();
    outcomes_.emplace_back(RelayRefused{error.what(), error.kind() == Kind::kSkewed});
    return;
  }
  if (error.may_pass()) outage(now, error);
  const auto lasts = [&](std::optional<Time>& since, Time patience) {
    if (!since) since = now;
    return now - *since >= patience;
  };
  if (download_) {
    if (!error.may_pass() && (error.kind() == Kind::kAbsent || ++download_->tries == kTries)) {
      return end_download(error.what());
    }
    // Another machine may reach it.
    if (error.may_pass() && lasts(download_->failing_since, kFetchPatience)) {
      end_download(error.what(), true);
    }
  } else if (upload_) {
    if (!error.may_pass()) {
      if (++upload_->tries == kTries) return end_upload(error.what());
      quiet_until_ = now + std::chrono::seconds(1 << (upload_->tries - 1));
    } else if (lasts(upload_->failing_since, kStorePatience)) {
      end_upload(error.what());
    }
  }
}

void ObjectCarrier::outage(Time now, const ObjectError& error) {
  if (!failing_since_) failing_since_ = now;
  pause_ = std::min(kLongestPause, std::max<Time>(2 * pause_, std::chrono::seconds(1)));
  quiet_until_ = now + pause_;
  if (is_told_ || (error.kind() == Kind::kAway && now - *failing_since_ < kTold)) return;
  is_told_ = true;
  notice(
      fmt::format("{}; checkpoints wait on this machine, and trials train on: it is tried again "
                  "for {} min",
                  error.what(), kStorePatience / std::chrono::minutes(1)));
}

void ObjectCarrier::notice(std::string text) {
  if (times_told_ >= 2 * kMostTold) return;
  ++times_told_;
  outcomes_.emplace_back(RelayNotice{std::move(text)});
}

// ---- Checkpoints to the store -------------------------------------------------------------------

void ObjectCarrier::step_upload() {
  if (!upload_) {
    upload_.emplace();
    upload_->order = waiting_.front();
    waiting_.pop_front();
  }
  const auto& [saved, share] = upload_->order;
  if (!share.joins.empty()) return join_next();
  if (!upload_->is_listed) list_upload();
  if (!upload_) return;
  const ObjectManifest& manifest = upload_->manifest;
  const std::string folder = folder_of({saved.trial, saved.iteration, saved.attempt});
  if (manifest.pieces.size() == count_of_pieces(manifest.files, manifest.piece_bytes)) {
    store_.put(share.part ? part_list_name(folder, *share.part) : manifest_name(folder),
               to_text(ObjectParts{manifest}));
    return end_upload("");
  }
  std::string bytes;
  try {
    const std::string root = own_folder(upload_->order) + "/";
    for (const FilePart& part :
         parts_of_piece(manifest.files, manifest.piece_bytes, manifest.pieces.size())) {
      const std::string read =
          files_.read(root + manifest.files[part.file].path, part.offset, part.bytes);
      if (read.size() != part.bytes) {
        return end_upload(
            fmt::format("{} became shorter while it was carried", manifest.files[part.file].path));
      }
      bytes += read;
    }
  } catch (const Error& error) {
    return end_upload(error.what());
  }
  const std::string sum = to_hex(sha256(bytes));
  store_.put(piece_name(folder, sum), bytes);
  upload_->manifest.pieces.push_back(sum);
}

void ObjectCarrier::list_upload() {
  try {
    upload_->manifest.files = files_.list(own_folder(upload_->order));
  } catch (const Error& error) {
    return end_upload(error.what());
  }
  upload_->manifest.piece_bytes = piece_bytes_;
  const ObjectManifest& manifest = upload_->manifest;
  std::string why = why_not_relayed(manifest.files);
  if (const auto pieces = count_of_pieces(manifest.files, manifest.piece_bytes);
      why.empty() && pieces > kMaxObjectPieces) {
    why = fmt::format("it has {} pieces of {} bytes, and {} are the limit", pieces,
                      manifest.piece_bytes, kMaxObjectPieces);
  }
  if (!why.empty()) return end_upload(why);
  upload_->is_listed = true;
}

// The pieces of all parts are there: their lists become the manifest.
void ObjectCarrier::join_next() {
  const auto& [saved, share] = upload_->order;
  const std::string folder = folder_of({saved.trial, saved.iteration, saved.attempt});
  ObjectParts& parts = upload_->parts;
  if (parts.size() < share.joins.size()) {
    const std::string name = part_list_name(folder, share.joins[parts.size()].node);
    const std::string text = store_.get(name);
    try {
      parts.push_back(parts_from(text, name).front());
    } catch (const Error& error) {
      end_upload(error.what());
    }
    return;
  }
  if (const auto differing = find_difference(parts)) {
    const std::string& host = share.joins[differing->part].host;
    return end_upload(PartsDiffer(host, differing->path).what(), false, true);
  }
  if (const std::string why = why_not_relayed(files_of(parts)); !why.empty()) {
    return end_upload(why);
  }
  store_.put(manifest_name(folder), to_text(parts));
  end_upload("");
}

// Here it stands under its name; the part of a group's where its ranks have written it.
std::string ObjectCarrier::own_folder(const Order& order) const {
  const auto& [trial, attempt] = std::pair(order.saved.trial, order.saved.attempt);
  const RelayPlace place =
      checkpoint_place(experiment_id_, {trial, order.saved.iteration, attempt});
  return order.share.is_all() ? place.place : place.temporary;
}

void ObjectCarrier::remove_own(const Order& order) {
  if (order.share.joins.empty()) files_.remove(own_folder(order));
}

void ObjectCarrier::end_upload(const std::string& error, bool is_newer, bool is_of_trial) {
  const auto& [saved, share] = upload_->order;
  if (keeps_ && error.empty() && !is_newer && share.is_all()) {
    kept_.keep({saved.trial, saved.iteration, saved.attempt});
  } else {
    remove_own(upload_->order);
  }
  outcomes_.emplace_back(RelayStored{saved, error, is_newer, is_of_trial});
  upload_.reset();
}

// ---- Checkpoints from there ---------------------------------------------------------------------

void ObjectCarrier::step_download() {
  if (!download_) {
    download_ = std::move(fetches_.front());
    fetches_.pop_front();
  }
  if (!download_->parts) return begin_download();
  const ObjectParts& parts = *download_->parts;
  const RelayPlace place = place_of(*download_);
  try {
    if (!is_end(parts, download_->next)) {
      read_next(store_, folder_of(download_->checkpoint), parts, download_->next,
                [&](const std::string& path, std::uint64_t offset, std::string_view bytes) {
                  files_.write(place.temporary + "/" + path, offset, bytes);
                });
      download_->tries = 0;
      if (!is_end(parts, download_->next)) return;
    }
    files_.commit(place, files_of(parts));
  } catch (const ObjectError&) {
    throw;
  } catch (const Error& error) {
    return end_download(error.what(), true);
  }
  end_download("");
}

void ObjectCarrier::begin_download() {
  const std::string name = manifest_name(folder_of(download_->checkpoint));
  const std::string text = store_.get(name);
  try {
    download_->parts = parts_from(text, name);
  } catch (const Error& error) {
    return end_download(error.what());
  }
  try {
    files_.begin(place_of(*download_), files_of(*download_->parts));
  } catch (const Error& error) {
    return end_download(error.what(), true);
  }
}

void ObjectCarrier::end_download(const std::string& error, bool is_of_agent) {
  if (!error.empty()) files_.remove(place_of(*download_).temporary);
  outcomes_.emplace_back(RelayFetched{download_->trial, download_->attempt, error, is_of_agent});
  download_.reset();
}

}  // namespace tune
