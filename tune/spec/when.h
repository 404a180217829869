// Times as users write them. Pure but for the local time zone.
#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

namespace tune {

// "90", "90s", "5m", "4h", "1h30m", "2d". Throws Error (kBadInput) that names the option.
std::chrono::nanoseconds duration_of(std::string_view text, const std::string& option);

// The time from `now` until then: a duration, or a time of the local clock, "18:30" (the next such
// time) or "2026-11-22T18:30". Throws Error (kBadInput) that names the option, also when it is
// over.
std::chrono::nanoseconds time_until(const std::string& text, std::time_t now,
                                    const std::string& option);

// Slurm's words for a job's time: "1-02:03:04", "02:03:04", "3:04". Nothing: it has no limit, or
// this is not a time.
std::optional<std::chrono::nanoseconds> time_of_slurm(std::string_view text);

// "4 h 30 min", "12 min", "40 s".
std::string in_words(std::chrono::nanoseconds time);

}  // namespace tune
