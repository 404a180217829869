#include "tune/control/course.h"

#include <vector>

namespace tune {

void Course::go_on() {
  failure_.clear();
  phase_ = Phase::kRunning;
}

void Course::end(Phase phase) {
  phase_ = phase;
  const char* how = phase == Phase::kFinished      ? "finished"
                    : phase == Phase::kInterrupted ? "interrupted"
                                                   : "failed";
  out_->tell(ExperimentOver{how, failure_});
}

void Course::end(Phase phase, std::string why) {
  failure_ = std::move(why);
  end(phase);
}

void Course::fail(std::string why) {
  if (!is_over()) end(Phase::kFailed, std::move(why));
}

void Course::warn(const std::string& text) {
  constexpr std::size_t kMaxKept = 1000;
  if (warnings_.contains(text)) return;
  if (warnings_.size() < kMaxKept) warnings_.insert(text);
  out_->notice(text);
}

void Course::save(PackWriter& out) const {
  encode(out, phase_);
  encode(out, failure_);
}

void Course::restore(PackReader& in) {
  decode(in, phase_);
  decode(in, failure_);
}

void Course::save_warnings(PackWriter& out) const {
  encode(out, std::vector<std::string>(warnings_.begin(), warnings_.end()));
}

void Course::restore_warnings(PackReader& in) {
  std::vector<std::string> warnings;
  decode(in, warnings);
  warnings_ = {warnings.begin(), warnings.end()};
}

}  // namespace tune
