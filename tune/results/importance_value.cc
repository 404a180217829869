#include "tune/results/importance_value.h"

#include <utility>

namespace tune {

Value to_value(const Importance& importance) {
  Value::List parameters;
  for (const Importance::Parameter& one : importance.parameters) {
    Value value{{"path", one.path}};
    if (!one.when.empty()) value.set("when", one.when);
    value.set("importance", one.share);
    value.set("stands_out", one.stands_out);
    value.set("trials", one.trials);
    parameters.push_back(std::move(value));
  }
  return Value{
      {"metric", importance.metric},   {"mode", importance.mode == Mode::kMin ? "min" : "max"},
      {"trials", importance.trials},   {"best", importance.best},
      {"outside", importance.outside}, {"parameters", Value::make_list(std::move(parameters))}};
}

}  // namespace tune
