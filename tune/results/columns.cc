#include "tune/results/columns.h"

#include <algorithm>

namespace tune {

Columns::Columns(const std::vector<std::string>& names) {
  for (const std::string& name : names) add(name);
}

void Columns::add(std::string name) {
  names_.push_back(std::move(name));
  index_.emplace(names_.back(), static_cast<std::uint32_t>(names_.size() - 1));
}

std::optional<std::uint32_t> Columns::find(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

void Columns::learn(const ResultText& result) {
  for (std::size_t cell = 0; cell < result.cells(); ++cell) {
    if (!find(result.path(cell))) add(std::string(result.path(cell)));
  }
}

void Columns::arrange() {
  std::vector<std::string> names(names_.begin(), names_.end());
  std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return result_field_index(a) < result_field_index(b);
  });
  *this = Columns();
  for (std::string& name : names) add(std::move(name));
}

void Columns::append_header(std::string& out, std::string_view prefix) const {
  for (std::size_t column = 0; column < size(); ++column) {
    if (column > 0) out += ',';
    append_csv_text(out, std::string(prefix) + names_[column]);
  }
}

bool Columns::append_row(std::string& out, const ResultText& result) {
  row_.assign(size(), -1);
  guesses_.resize(std::max(guesses_.size(), result.cells()), 0);
  std::size_t most_bytes = size();  // a path may be there twice
  for (std::size_t cell = 0; cell < result.cells(); ++cell) {
    std::uint32_t& column = guesses_[cell];
    const std::string_view path = result.path(cell);
    if (column >= size() || names_[column] != path) {
      const std::optional<std::uint32_t> found = find(path);
      if (!found) return false;
      column = *found;
    }
    row_[column] = static_cast<std::int32_t>(cell);
    most_bytes += result.text(cell).size();
  }
  // Into room that is there: an append of each cell would take several times as long.
  const std::size_t begin = out.size();
  out.resize(begin + most_bytes);
  char* at = out.data() + begin;
  for (std::size_t column = 0; column < size(); ++column) {
    if (column > 0) *at++ = ',';
    if (row_[column] < 0) continue;
    const std::string_view text = result.text(static_cast<std::size_t>(row_[column]));
    at = std::copy(text.begin(), text.end(), at);
  }
  out.resize(static_cast<std::size_t>(at - out.data()));
  return true;
}

}  // namespace tune
