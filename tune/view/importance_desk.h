// ImportanceDesk: the importance of an experiment's parameters, as `tune importance` tells it (of
// several objectives by the first). Reading the results of all trials may take a while: so it is
// found in a thread of its own, one experiment after another, and the page asks again. For the
// newest few experiments it keeps what it has read, and reads again what has changed. One thread
// uses it.
#pragma once

#include <memory>

#include "core/value.h"
#include "tune/view/experiment.h"

namespace tune::view {

class ImportanceDesk {
 public:
  ImportanceDesk();
  ~ImportanceDesk();  // waits for the one that is being found

  // The present answer for this experiment: {"importance": {...}} or {"problem": why there is
  // none}, with "at" (the count of changes that it is of) and "is_current". Where it is not current
  // it is found anew; {"is_current": false} alone: it is the first time.
  Value ask(const Experiment& experiment);

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace tune::view
