// Exporter: writes what an experiment's folder tells in the form of another tool, as far as it is
// not there yet. Beside a running sweep (LoggerThreads) and by `tune export`; what one of them has
// left the next one finds. One thread uses it at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tune {

inline constexpr std::size_t kMaxProblems = 20;  // told of one experiment

class Exporter {
 public:
  virtual ~Exporter() = default;
  // Writes what is new since the last call; returns early when `ends` says so. Throws Error when it
  // cannot go on.
  virtual void write_news(const std::function<bool()>& ends) = 0;
  // After the last news.
  virtual void finish() = 0;
  // Of the user's files, found meanwhile; each is told once.
  virtual std::vector<std::string> take_problems() = 0;
};

}  // namespace tune
