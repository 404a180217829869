// The promises about starts in vain: the next one waits, longer each time; after some in a row none
// follows; a host where each was in vain has no other, and no other host is left out. Counted from
// the journal, not from the pool's own book.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tune/control/pool_book.h"
#include "tune/drive/pool_machine.h"

namespace tune::simulator {

class StartPromises {
 public:
  using Number = PoolBook::Number;

  // What comes into the journal, in order.
  void changed(const AllocationChanged& change, ExperimentTime now);
  void ordered(const PoolOrdered& order);
  void said_hello(Number number);  // an agent of it, which takes part
  // A driver decides by what the journal says now, and asks for at most so many at once.
  void looks(ExperimentTime now, int at_once);
  // What it decides.
  void asks() const;
  void starts(const StartAllocation& start) const;
  // The book's hosts that get no more.
  void excludes(const std::vector<std::string>& hosts) const;

 private:
  struct Open {
    std::string host;
    bool has_joined = false;
  };
  void learn_host(Open& one, const std::string& host);
  void count(const AllocationChanged& end, const Open& one, ExperimentTime now);
  bool is_out(const std::string& host) const;

  std::map<Number, Open> open_;
  std::map<std::string, int> in_vain_;  // starts, by host
  std::set<std::string> drained_;
  int starts_ = 0;       // in vain, in a row
  int submissions_ = 0;  // likewise
  ExperimentTime last_bad_{};
  std::string why_not_;  // nothing may be asked for: the promise
};

}  // namespace tune::simulator
