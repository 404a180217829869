// Pictures as lines of text, for a terminal without a browser. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tune {

struct TextSeries {
  std::vector<std::pair<double, double>> points;  // those that are not finite are left out
  bool is_line = false;                           // else points alone
};

struct TextPlot {
  std::string title = {};
  std::string below = {};   // what the horizontal axis is
  std::size_t width = 80;   // columns, with the axis; at least 24
  std::size_t height = 16;  // lines, with title and axis; at least 6
  bool has_braille = true;  // dots of U+2800, eight to a letter; else '*'
};

// The plane holds all series; a few values far outside (of more than 20) are cut off at its edge.
// An axis at the left has its least and greatest value. Without a point it says so.
std::vector<std::string> text_plot(const TextPlot& plot, const std::vector<TextSeries>& series);

}  // namespace tune
