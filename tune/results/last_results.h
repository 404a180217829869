// LastResults: the time and place of each trial's last result, which results.csv needs and the
// trial itself does not keep. 40 bytes a trial, so that the table is made from memory instead of
// reading every result.json again. Saved with snapshots; missing entries (after a cut, say) are
// read from the files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tune/results/logger.h"
#include "tune/results/result_fields.h"

namespace tune {

class LastResults : public Logger {
 public:
  void record(const Record& record, const Telling& telling) override;
  void flush() override {}
  std::future<std::string> save() override;
  void restore(std::string_view state) override;

  // Makes the result as its line in result.json has it, but for the trial's id. False when the
  // result is not known here: it is larger than kMaxKeptBytes, or is not the last one.
  bool make(ResultText& text, const Trial& trial, const ExperimentTags& tags);

 private:
  struct Entry {
    std::uint64_t iteration = 0;  // 0: not known
    std::int64_t second = 0;      // wall time, unix
    std::int64_t pid = 0;
    std::uint32_t hostname = 0;  // of words_
    std::uint32_t node_ip = 0;
    std::uint32_t bytes = 0;  // of the packed result
    bool done = false;
    template <class Self, class F>
    static void fields(Self& s, F& f) {
      f(s.iteration, s.second, s.pid, s.hostname, s.node_ip, s.bytes, s.done);
    }
  };
  std::uint32_t word(std::string_view text);

  std::map<AgentNumber, std::uint32_t> hostnames_;
  std::vector<Entry> entries_;  // by trial
  std::vector<std::string> words_ = {""};
  std::map<std::string, std::uint32_t, std::less<>> index_ = {{"", 0}};
  LocalDates dates_;
};

}  // namespace tune
