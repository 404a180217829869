#include "trainables/solitude.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tune {
namespace {

int depth = 0;

// Never destroyed: a listener may live as long as the program.
std::vector<const SolitudeListener*>& listeners() {
  static auto& all = *new std::vector<const SolitudeListener*>;
  return all;
}

void tell(bool begins) {
  for (const SolitudeListener* listener : std::vector(listeners())) listener->hear(begins);
}

}  // namespace

Solitude::Solitude() {
  if (depth++ == 0) tell(true);
}

Solitude::~Solitude() {
  if (--depth == 0) tell(false);
}

SolitudeListener::SolitudeListener(std::function<void(bool)> told) : told_(std::move(told)) {
  listeners().push_back(this);
}

SolitudeListener::~SolitudeListener() {
  std::erase(listeners(), this);
}

}  // namespace tune
