// The text of a constraint between parameters (tune/search/where.h) as steps of a computation.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "tune/search/where.h"

namespace tune {

struct ParsedWhere {
  std::vector<std::string> paths;  // each once
  std::vector<WhereRule::Step> steps;
  WhereRule::Relation relation = WhereRule::Relation::kLess;
};

// Throws Error (kBadInput) that shows the text and says what stands where.
ParsedWhere parse_where(const std::string& text);

}  // namespace tune
