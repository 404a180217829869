// The columns of a table of results: result fields first, in their own order, then metrics in the
// order first seen. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tune/results/result_text.h"

namespace tune {

class Columns {
 public:
  Columns() = default;
  Columns(Columns&&) = default;
  Columns& operator=(Columns&&) = default;
  explicit Columns(const std::vector<std::string>& names);  // in this order

  bool empty() const { return names_.empty(); }
  std::size_t size() const { return names_.size(); }
  const std::string& name(std::size_t column) const { return names_[column]; }
  std::optional<std::uint32_t> find(std::string_view name) const;
  // Adds the columns of a result that are not there yet.
  void learn(const ResultText& result);
  // Moves the result fields to the front. Once, before rows are written.
  void arrange();

  // Names in one row, each after `prefix`; rows without their line's end.
  void append_header(std::string& out, std::string_view prefix = {}) const;
  // Appends a result as a row; false, and nothing appended, when it has a cell without a column.
  bool append_row(std::string& out, const ResultText& result);

 private:
  void add(std::string name);

  std::deque<std::string> names_;
  std::unordered_map<std::string_view, std::uint32_t> index_;  // views into names_; never iterated
  std::vector<std::uint32_t>
      guesses_;                    // columns of the last result's cells: mostly those of the next
  std::vector<std::int32_t> row_;  // cell of each column; -1: none
};

}  // namespace tune
