// Api: the data that the page asks for. Nothing in an address is a path or a command: experiments
// are named by keys of the list, trials by numbers, columns by numbers. One thread uses it.
//
// clang-format off
//   /api/experiments                                 the list
//   /api/x/KEY/meta                                  names, counts, the best, nodes, notices
//   /api/x/KEY/columns?c=LIST[&since=N]              columns of all trials, or of those changed after N
//   /api/x/KEY/attempts                              who ran where and when
//   /api/x/KEY/rungs                                 values at each rung, verdicts, cut-offs
//   /api/x/KEY/curves?m=METRIC&best=N&sample=N       curves of some trials
//   /api/x/KEY/importance                            of the parameters, as far as it was found
//   /api/x/KEY/lineage                               trials that go on from others' checkpoints
//   /api/x/KEY/trial?n=NUMBER                        one trial
//   /api/x/KEY/results?n=NUMBER                      its newest curves
//   /api/x/KEY/log?n=NUMBER&s=0|1&r=RANK[&from=OFFSET]   what it printed
//   /metrics                                         Prometheus
// clang-format on
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tune/view/importance_desk.h"
#include "tune/view/storage.h"

namespace tune::view {

struct Answer {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::string etag = {};  // empty: not to be kept
};

class Api {
 public:
  // `boot` differs for each start of the server: numbers of changes count from its beginning.
  // `control`: the page may give orders.
  Api(Storage& storage, std::string boot, bool control = false)
      : storage_(storage), boot_(std::move(boot)), control_(control) {}

  // `known` is the etag that the asker has: 304 when it is still right.
  Answer answer(std::string_view target, std::string_view known);
  const std::string& boot() const { return boot_; }
  // The folder of the experiment of this key; null when there is none.
  const std::filesystem::path* directory_of(std::string_view key);

 private:
  using Query = std::map<std::string, std::string, std::less<>>;

  Answer about(Experiment& experiment, std::string_view what, const Query& query,
               std::string_view known);
  Answer meta(Experiment& experiment, std::string_view known);
  Answer list();
  Answer metrics();

  Storage& storage_;
  std::string boot_;
  bool control_;
  std::map<std::string, Answer> metas_;  // by experiment
  ImportanceDesk importance_;
};

}  // namespace tune::view
