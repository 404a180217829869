#include "tune/show/make_reporter.h"

#include "tune/show/console_reporter.h"
#include "tune/show/quiet_reporter.h"

namespace tune {

std::shared_ptr<ProgressReporter> make_reporter(const RunOptions& options) {
  if (options.reporter.own) return options.reporter.own;
  if (options.quiet) return std::make_shared<QuietReporter>();
  return std::make_shared<ConsoleReporter>(options.reporter);
}

}  // namespace tune
