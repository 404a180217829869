#include "core/platform/lock_sign.h"

#include <sstream>

#include <fmt/format.h>

namespace tune {

std::string to_text(const LockSign& sign) {
  return fmt::format("{} {} {} {}\n", sign.pid, sign.host, sign.boot, sign.beats);
}

LockSign sign_of_text(std::string_view text) {
  std::istringstream words{std::string(text)};
  LockSign sign;
  if (!(words >> sign.pid) || sign.pid <= 0) return {};
  if (!(words >> sign.host >> sign.boot >> sign.beats)) return {.pid = sign.pid};
  return sign;
}

std::string describe(const LockSign& sign) {
  return fmt::format("process {} of host {}", sign.pid, sign.host);
}

HolderWatch::Verdict HolderWatch::look(const LockSign& seen, Time now) {
  const bool is_local = seen.host.empty() || seen.boot == own_.boot;
  if (seen.pid == 0 || is_local) return Verdict::kFree;
  if (!last_ || *last_ != seen) {
    has_counted_ = last_.has_value();
    last_ = seen;
    since_ = now;
  }
  if (now - since_ >= silence_) return Verdict::kSilent;
  return has_counted_ ? Verdict::kAlive : Verdict::kUnclear;
}

}  // namespace tune
