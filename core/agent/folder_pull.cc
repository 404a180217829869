#include "core/agent/folder_pull.h"

#include <algorithm>

namespace tune {

std::uint64_t piece_bytes(const RelayFile& file, std::uint64_t offset) {
  if (offset >= file.size) return 0;
  return std::min<std::uint64_t>(kRelayPieceBytes, file.size - offset);
}

FolderPull::FolderPull(Time now, std::uint64_t number, std::vector<RelayFile> files)
    : number_(number), files_(std::move(files)), heard_(now) {
  while (next_file_ < files_.size() && files_[next_file_].size == 0) ++next_file_;
}

std::optional<FolderPull::Place> FolderPull::next() {
  if (next_file_ == files_.size()) return std::nullopt;
  const Place place{next_file_, next_offset_};
  next_offset_ += piece_bytes(files_[next_file_], next_offset_);
  while (next_file_ < files_.size() && next_offset_ >= files_[next_file_].size) {
    ++next_file_;
    next_offset_ = 0;
  }
  return place;
}

std::vector<WantPiece> FolderPull::wants(Time now) {
  std::vector<WantPiece> wanted;
  for (auto& [place, since] : asked_) {
    if (now - std::max(since, heard_) < kPatience) continue;
    since = now;
    wanted.push_back({number_, place.first, place.second});
  }
  while (asked_.size() < kMaxAsked) {
    const auto place = next();
    if (!place) break;
    asked_.emplace(*place, now);
    wanted.push_back({number_, place->first, place->second});
  }
  return wanted;
}

bool FolderPull::take(Time now, const RelayPiece& piece) {
  const auto asked = asked_.find({piece.file, piece.offset});
  if (asked == asked_.end()) return false;
  if (piece.bytes.bytes.size() != piece_bytes(files_[piece.file], piece.offset)) return false;
  asked_.erase(asked);
  heard_ = now;
  return true;
}

}  // namespace tune
