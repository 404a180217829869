#include "tune/export/cursor.h"

#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "tune/results/result_lines.h"

namespace tune {

namespace {

constexpr std::size_t kSpare = 1u << 20;  // bytes beyond twice what is needed

std::string line_of(std::uint32_t trial, const Cursor::Place& place) {
  return fmt::format("{} {} {} {} {} {}\n", trial, place.iterations, place.started, place.ended,
                     place.checkpoint_attempt, place.checkpoint_iteration);
}

}  // namespace

Cursor::Cursor(std::filesystem::path file) : file_(std::move(file)) {
  for_each_line(file_, [this](std::string_view line, std::size_t) {
    std::istringstream words{std::string(line)};
    std::uint32_t trial = 0;
    Place place;
    if (words >> trial >> place.iterations >> place.started >> place.ended >>
        place.checkpoint_attempt >> place.checkpoint_iteration) {
      places_[trial] = place;
    }
  });
  written_ = SIZE_MAX / 2;  // the first save writes it anew: its end may be half a line
}

Cursor::Place Cursor::at(std::uint32_t trial) const {
  const auto found = places_.find(trial);
  return found == places_.end() ? Place() : found->second;
}

void Cursor::set(std::uint32_t trial, const Place& place) {
  Place& kept = places_[trial];
  if (kept == place) return;
  kept = place;
  pending_ += line_of(trial, place);
}

void Cursor::save() {
  if (pending_.empty()) return;
  constexpr std::size_t kLine = 16;
  if (written_ > kSpare + 2 * kLine * places_.size()) {
    std::string all;
    for (const auto& [trial, place] : places_) all += line_of(trial, place);
    std::filesystem::create_directories(file_.parent_path());
    write_file_atomically(file_, all);
    written_ = all.size();
  } else {
    AppendFile(file_, false).write(pending_);
    written_ += pending_.size();
  }
  pending_.clear();
}

}  // namespace tune
