// An Importance as plain values, for `tune importance --json` and the page.
#pragma once

#include "core/value.h"
#include "tune/results/importance.h"

namespace tune {

Value to_value(const Importance& importance);

}  // namespace tune
