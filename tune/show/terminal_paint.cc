#include "tune/show/terminal_paint.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace tune {

namespace {

constexpr std::uint64_t kFewestForTime = 3;  // trials that are over

constexpr const char* kPlain = "\x1b[0m";
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kGreen = "\x1b[1;32m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kFaint = "\x1b[2m";

// The basic colours, which every theme of a terminal keeps readable.
constexpr std::array<std::pair<std::string_view, const char*>, 5> kStatusColours = {
    {{"PENDING", kFaint},
     {"RUNNING", "\x1b[36m"},
     {"PAUSED", kYellow},
     {"TERMINATED", "\x1b[34m"},
     {"ERROR", "\x1b[1;31m"}}};

std::uint64_t count_of(const ExperimentStatus& status, TrialStatus of) {
  return status.counts[static_cast<std::size_t>(of)];
}

// "40 s", "12 min", "3 h 20 min", "2 d 4 h".
std::string rough_time(double seconds) {
  const auto minutes = static_cast<std::uint64_t>(seconds / 60 + 0.5);
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (minutes < 120) return fmt::format("{} min", minutes);
  if (minutes < 48 * 60) return fmt::format("{} h {} min", minutes / 60, minutes % 60);
  return fmt::format("{} d {} h", minutes / 1440, minutes / 60 % 24);
}

std::string in_colour(std::string_view text, const char* colour) {
  return fmt::format("{}{}{}", colour, text, kPlain);
}

// The status in a row of the table: the only cell that is one of these words, with blanks around.
std::string with_status(const std::string& row) {
  for (const auto& [word, colour] : kStatusColours) {
    const std::string cell = fmt::format("| {} ", word);
    const std::size_t at = row.find(cell);
    if (at == row.npos) continue;
    const std::size_t begin = at + 2;
    return row.substr(0, begin) + in_colour(word, colour) + row.substr(begin + word.size());
  }
  return row;
}

// "3 trials wait: 1 job asked for for 12 s", "Paused by users: ...", "Set aside, as ...".
bool tells_of_a_wait(std::string_view line) {
  return line.starts_with("Set aside,") || line.starts_with("Paused by users:") ||
         line.starts_with("trials wait: ") || line.starts_with("1 trial waits: ") ||
         (line.find(" trials wait: ") != line.npos &&
          line.find_first_not_of("0123456789") == line.find(" trials wait: "));
}

}  // namespace

std::string time_to_go(const ExperimentStatus& status) {
  if (!status.live || !status.total_trials) return {};
  const std::uint64_t over =
      count_of(status, TrialStatus::kTerminated) + count_of(status, TrialStatus::kError);
  if (over < kFewestForTime || over >= *status.total_trials) return {};
  const double each = seconds(status.running_for) / static_cast<double>(over);
  return fmt::format("about {} to go",
                     rough_time(each * static_cast<double>(*status.total_trials - over)));
}

std::string painted(const std::string& line, std::string_view best) {
  if (line.starts_with("| Trial name")) return in_colour(line, kBold);
  if (line.starts_with("|-")) return in_colour(line, kFaint);
  if (line.starts_with("| ")) {
    const bool is_best = !best.empty() && line.find(best) != line.npos;
    return is_best ? in_colour(line, kGreen) : with_status(line);
  }
  if (line.starts_with("== Status ==")) return in_colour(line, kBold);
  if (line.starts_with("Current best trial:")) return in_colour(line, kGreen);
  if (line.starts_with("... ")) return in_colour(line, kFaint);
  if (tells_of_a_wait(line)) return in_colour(line, kYellow);
  return line;
}

}  // namespace tune
