#include "tune/spec/scheduler_kinds.h"

#include "schedulers/scheduler_parameters.h"
#include "tune/search/pb2/pb2.h"
#include "tune/search/pbt/pbt.h"

namespace tune {

SchedulerSpec any_scheduler_from_config(const std::string& name, const Config& parameters) {
  const std::string plain = plain_scheduler_name(name);
  if (plain == "pbt") return pbt_from_config(parameters);
  if (plain == "pb2") return pb2_from_config(parameters);
  return scheduler_from_config(name, parameters);
}

}  // namespace tune
