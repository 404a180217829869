#include "trainables/solitude.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tune {
namespace {

int depth = 0;
const SolitudeWitness* witness = nullptr;

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

SolitudeWitness::SolitudeWitness(std::function<bool()> sees)
    : sees_(std::move(sees)),
      former_(std::exchange(witness, this)),
      process_(::getpid()),
      thread_(std::this_thread::get_id()) {}

SolitudeWitness::~SolitudeWitness() {
  witness = former_;
}

std::optional<bool> is_another_alone() {
  if (witness == nullptr || witness->process_ != ::getpid()) return std::nullopt;
  if (witness->thread_ != std::this_thread::get_id()) return std::nullopt;
  return witness->sees_();
}

}  // namespace tune
