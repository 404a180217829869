#include "tune/results/events_log.h"

#include <memory>
#include <utility>

#include "core/wire.h"

namespace tune {

EventsLog::EventsLog(const std::filesystem::path& directory, const ExperimentSpec& spec,
                     SideWork& work)
    : file_(directory / "events.jsonl"), work_(work), lines_(spec) {}

void EventsLog::record(const Record& record, const Telling& telling) {
  lines_.record(record, telling.wall);
}

// The first flush cuts the file to where this log begins.
void EventsLog::flush() {
  if (lines_.text().empty() && is_begun_) return work_.check();
  const std::uint64_t at = std::exchange(bytes_, bytes_ + lines_.text().size());
  auto write = [this, at, is_first = !std::exchange(is_begun_, true), text = lines_.take()] {
    if (is_first) cut_file(file_, at);
    if (text.empty()) return;
    if (!out_.is_open()) out_ = AppendFile(file_, false);
    out_.write(text);
  };
  work_.add(bytes_ - at, std::move(write));
}

std::future<std::string> EventsLog::save() {
  flush();
  auto saved = std::make_shared<std::promise<std::string>>();
  work_.add(0, [saved, state = encoded(bytes_)] { saved->set_value(state); });
  return saved->get_future();
}

void EventsLog::restore(std::string_view state) {
  bytes_ = bytes_in(state);
}

std::uint64_t EventsLog::bytes_in(std::string_view state) {
  PackReader in(state);
  std::uint64_t bytes = 0;
  decode(in, bytes);
  in.expect_end();
  return bytes;
}

}  // namespace tune
