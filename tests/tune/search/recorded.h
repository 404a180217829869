// Files of tests/data/search: lines of words, the first of which says what the others are.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace tune {

struct Line {
  std::vector<std::string> words;
  const std::string& kind() const { return words.front(); }
  // The words from one on, as numbers.
  std::vector<double> numbers(std::size_t from = 1) const {
    std::vector<double> found;
    for (std::size_t i = from; i < words.size(); ++i) {
      found.push_back(words[i] == "inf" ? std::numeric_limits<double>::infinity()
                                        : std::stod(words[i]));
    }
    return found;
  }
};

inline std::vector<Line> recorded_lines(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path);
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    Line line;
    for (std::string word; words >> word;) line.words.push_back(word);
    lines.push_back(std::move(line));
  }
  REQUIRE(lines.size() > 10);
  return lines;
}

inline void check_near(const std::vector<double>& found, const std::vector<double>& expected,
                       double tolerance, const std::string& what) {
  REQUIRE_MESSAGE(found.size() == expected.size(), what);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double off = found[i] - expected[i];
    CHECK_MESSAGE(doctest::Approx(off).epsilon(tolerance).scale(1) == 0,
                  what << " " << i << ": " << found[i] << " for " << expected[i]);
  }
}

}  // namespace tune
