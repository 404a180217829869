#include "tune/show/text_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "tune/show/status_block.h"

namespace tune {

namespace {

constexpr std::size_t kAxisWidth = 11;  // "  0.123456 |"
constexpr std::size_t kLeastWidth = 24, kLeastHeight = 6;
constexpr std::size_t kFewestToCut = 20;

struct Range {
  double low = 0, high = 1;
  std::size_t place(double value, std::size_t count) const {
    const double share = (std::clamp(value, low, high) - low) / (high - low);
    return std::min(count - 1, static_cast<std::size_t>(share * static_cast<double>(count)));
  }
};

Range range_of(std::vector<double> values, bool may_cut) {
  std::ranges::sort(values);
  Range range{values.front(), values.back()};
  if (may_cut && values.size() > kFewestToCut) {
    const double low = values[values.size() / 50],
                 high = values[values.size() - 1 - values.size() / 50];
    if (range.high - range.low > 4 * (high - low) && high > low) range = {low, high};
  }
  if (range.low == range.high) {
    const double room = std::max(0.5, 0.05 * std::abs(range.low));
    range = {range.low - room, range.high + room};
  }
  return range;
}

// The dots of the plane: two by four in a letter of Braille, or one.
class Dots {
 public:
  Dots(std::size_t columns, std::size_t rows, bool has_braille)
      : columns_(columns), rows_(rows), has_braille_(has_braille), letters_(columns * rows) {}
  std::size_t width() const { return columns_ * (has_braille_ ? 2 : 1); }
  std::size_t height() const { return rows_ * (has_braille_ ? 4 : 1); }
  void set(std::size_t x, std::size_t y) {  // from below
    const std::size_t up = height() - 1 - y;
    if (!has_braille_) {
      letters_[up * columns_ + x] = 1;
      return;
    }
    static constexpr std::uint8_t kBits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    letters_[up / 4 * columns_ + x / 2] |= kBits[up % 4][x % 2];
  }
  std::string row(std::size_t row) const {
    std::string text;
    for (std::size_t column = 0; column < columns_; ++column) {
      const std::uint8_t letter = letters_[row * columns_ + column];
      if (!has_braille_ || letter == 0) {
        text += letter == 0 ? ' ' : '*';
        continue;
      }
      // U+2800 and the dots, in UTF-8.
      text += "\xe2";
      text += static_cast<char>(0xa0 | letter >> 6);
      text += static_cast<char>(0x80 | (letter & 63));
    }
    return text;
  }

 private:
  std::size_t columns_, rows_;
  bool has_braille_;
  std::vector<std::uint8_t> letters_;
};

void draw(const TextSeries& series, const Range& across, const Range& up, Dots& dots) {
  std::ptrdiff_t last_x = -1, last_y = -1;
  for (const auto& [x, y] : series.points) {
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const auto column = static_cast<std::ptrdiff_t>(across.place(x, dots.width()));
    const auto line = static_cast<std::ptrdiff_t>(up.place(y, dots.height()));
    if (series.is_line && last_x >= 0) {
      const std::ptrdiff_t steps = std::max(std::abs(column - last_x), std::abs(line - last_y));
      for (std::ptrdiff_t i = 1; i < steps; ++i) {
        dots.set(static_cast<std::size_t>(last_x + (column - last_x) * i / steps),
                 static_cast<std::size_t>(last_y + (line - last_y) * i / steps));
      }
    }
    dots.set(static_cast<std::size_t>(column), static_cast<std::size_t>(line));
    last_x = column;
    last_y = line;
  }
}

}  // namespace

std::vector<std::string> text_plot(const TextPlot& plot, const std::vector<TextSeries>& series) {
  std::vector<double> xs, ys;
  for (const TextSeries& one : series) {
    for (const auto& [x, y] : one.points) {
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      xs.push_back(x);
      ys.push_back(y);
    }
  }
  std::vector<std::string> lines = {one_line(plot.title)};
  if (xs.empty()) {
    lines.emplace_back("  nothing yet");
    return lines;
  }
  const Range across = range_of(std::move(xs), false), up = range_of(std::move(ys), true);
  const std::size_t rows = std::max(plot.height, kLeastHeight) - 3;
  Dots dots(std::max(plot.width, kLeastWidth) - kAxisWidth, rows, plot.has_braille);
  for (const TextSeries& one : series) draw(one, across, up, dots);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::string label = row == 0          ? fmt::format("{:.5g}", up.high)
                              : row == rows - 1 ? fmt::format("{:.5g}", up.low)
                                                : "";
    lines.push_back(fmt::format("{:>9} |{}", label, dots.row(row)));
  }
  const std::size_t columns = std::max(plot.width, kLeastWidth) - kAxisWidth;
  lines.push_back(std::string(kAxisWidth - 1, ' ') + '+' + std::string(columns, '-'));
  const std::string low = fmt::format("{:.6g}", across.low),
                    high = fmt::format("{:.6g}", across.high);
  const std::string below = one_line(plot.below);
  const std::size_t taken = low.size() + text_width(below) + high.size();
  const std::size_t blanks = columns > taken ? columns - taken : 2;
  lines.push_back(std::string(kAxisWidth, ' ') + low + std::string(blanks / 2, ' ') + below +
                  std::string(blanks - blanks / 2, ' ') + high);
  return lines;
}

}  // namespace tune
