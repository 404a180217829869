// The mass of a normal kernel in an interval. Pure.
#pragma once

namespace tune::search::tpe {

// The logarithm of P(low <= x <= high) for x normal with this mean and standard deviation, however
// far away the interval is. Right to 1e-10 when it is at least a thousandth of the deviation.
// -infinity when it is empty.
double log_mass(double low, double high, double mean, double standard_deviation);

}  // namespace tune::search::tpe
