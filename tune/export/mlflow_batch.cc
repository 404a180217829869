#include "tune/export/mlflow_batch.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/json.h"
#include "core/random.h"
#include "core/strings.h"

namespace tune {

namespace {

// A request may have 1,000 entries, of these 100 params and 100 tags, and a megabyte.
constexpr std::size_t kParams = 90, kTags = 50, kMetrics = 800;
constexpr std::size_t kBytes = 800'000;
// Bytes; MLflow counts letters.
constexpr std::size_t kNameBytes = 250, kParamBytes = 6000, kTagBytes = 5000;

bool is_allowed(char c) {
  return static_cast<unsigned char>(c) >= 0x80 || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-. :/").find(c) != std::string_view::npos;
}

// As posixpath.normpath leaves it.
bool is_plain_path(std::string_view name) {
  if (name.empty()) return false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view step = name.substr(begin, end - begin);
    if (step.empty() || step == "." || step == "..") return false;
    begin = end + 1;
  }
  return true;
}

// Not in the middle of a letter.
std::string_view cut_text(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

void add_entry(std::string& to, std::string_view name, std::string_view value) {
  if (!to.empty()) to += ',';
  to += R"({"key":)";
  append_json_text(to, name);
  to += R"(,"value":)";
  append_json_text(to, value);
  to += '}';
}

}  // namespace

std::string mlflow_name(std::string_view name) {
  std::string fit;
  for (const char c : cut_text(name, kNameBytes)) fit += is_allowed(c) ? c : '_';
  if (!is_plain_path(fit)) {
    for (char& c : fit) c = c == '/' || c == '.' ? '_' : c;
  }
  if (fit == name) return fit;
  const std::string mark = fmt::format("-{:08x}", static_cast<std::uint32_t>(hash64(name)));
  return std::string(cut_text(fit, kNameBytes - mark.size())) + mark;
}

void MlflowBatch::param(std::string_view name, std::string_view value) {
  add_entry(params_, mlflow_name(name), cut_text(value, kParamBytes));
  ++param_count_;
}

void MlflowBatch::tag(std::string_view name, std::string_view value) {
  add_entry(tags_, mlflow_name(name), cut_text(value, kTagBytes));
  ++tag_count_;
}

void MlflowBatch::metric(std::string_view name, double value, std::int64_t time_ms,
                         std::uint64_t step) {
  if (!metrics_.empty()) metrics_ += ',';
  metrics_ += R"({"key":)";
  append_json_text(metrics_, mlflow_name(name));
  metrics_ += R"(,"value":)";
  if (std::isfinite(value)) {
    append_json_number(metrics_, value);
  } else {
    metrics_ += std::isnan(value) ? R"("NaN")" : value > 0 ? R"("Infinity")" : R"("-Infinity")";
  }
  metrics_ += fmt::format(R"(,"timestamp":{},"step":{}}})", time_ms, step);
  ++metric_count_;
}

bool MlflowBatch::is_full() const {
  return param_count_ >= kParams || tag_count_ >= kTags || metric_count_ >= kMetrics ||
         params_.size() + metrics_.size() + tags_.size() >= kBytes;
}

std::string MlflowBatch::take(const std::string& run_id) {
  std::string body = R"({"run_id":)";
  append_json_text(body, run_id);
  body += fmt::format(R"(,"metrics":[{}],"params":[{}],"tags":[{}]}})", metrics_, params_, tags_);
  *this = {};
  return body;
}

}  // namespace tune
