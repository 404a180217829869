#include "tune/search/cma_es/variables.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"

namespace tune::search::cma_es {

namespace {

constexpr std::uint64_t kMostCells = 1000;  // with more of them a number is as good as continuous

void refuse_conditions(const Encoding& encoding) {
  std::vector<std::string> paths;
  for (const Parameter& parameter : encoding.parameters()) {
    if (parameter.condition) paths.push_back("'" + parameter.path + "'");
  }
  if (paths.empty()) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("search: cma_es moves all parameters of a space together, but {} {} on "
                          "the option that a choice takes; take tpe or gp, or give {} a value in "
                          "each option",
                          join(paths, ", "), paths.size() == 1 ? "depends" : "depend",
                          paths.size() == 1 ? "it" : "them"));
}

}  // namespace

Variables::Variables(const Encoding& encoding) : encoding_(encoding) {
  refuse_conditions(encoding);
  std::vector<std::size_t> in_cells;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const UnitDomain& domain = encoding.parameters()[i].domain;
    const std::uint64_t count = domain.count().value_or(kMostCells + 1);
    if (domain.is_choice() || count == 2) {
      categories_.push_back(i);
      sizes_.push_back(static_cast<std::uint32_t>(count));
    } else if (count <= kMostCells) {
      in_cells.push_back(i);
    } else {
      numbers_.push_back(i);
    }
  }
  continuous_ = numbers_.size();
  numbers_.insert(numbers_.end(), in_cells.begin(), in_cells.end());
}

double Variables::in_cell(std::size_t number, double unit) const {
  return domain(number).cell(unit).at;
}

Thresholds Variables::thresholds(std::size_t number, double unit) const {
  const UnitCell cell = domain(number).cell(unit);
  if (cell.low <= 0) return {cell.high, cell.high};
  if (cell.high >= 1) return {cell.low, cell.low};
  return {cell.low, cell.high};
}

UnitPoint Variables::point(const Drawn& drawn) const {
  UnitPoint point(encoding_.size(), 0);
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    point[numbers_[i]] = domain(i).cell(std::clamp(drawn.numbers[i], 0.0, 1.0)).at;
  }
  for (std::size_t i = 0; i < categories_.size(); ++i) {
    const double unit = (drawn.categories[i] + 0.5) / sizes_[i];
    const UnitDomain& domain = encoding_.parameters()[categories_[i]].domain;
    // The two cells of a number need not be of one width.
    point[categories_[i]] =
        domain.cell(domain.is_choice() ? unit : (drawn.categories[i] == 0 ? 0.0 : 1.0)).at;
  }
  return point;
}

Drawn Variables::drawn(const UnitPoint& point) const {
  Drawn drawn;
  for (const std::size_t number : numbers_) drawn.numbers.push_back(point[number]);
  for (const std::size_t category : categories_) {
    const UnitDomain& domain = encoding_.parameters()[category].domain;
    const bool is_second = point[category] != domain.cell(0).at;
    drawn.categories.push_back(domain.is_choice()
                                   ? static_cast<std::uint32_t>(encoding_.option(category, point))
                                   : static_cast<std::uint32_t>(is_second));
  }
  return drawn;
}

}  // namespace tune::search::cma_es
