// The standard normal distribution. Pure.
#pragma once

namespace tune {

double normal_density(double z);
double normal_cdf(double z);  // accurate in both tails
// The logarithm of normal_cdf(z), also where that is below the smallest number: relative error below
// 1e-10 (Abramowitz and Stegun, 26.2.12).
double log_normal_cdf(double z);
// The z below which a share of `probability` lies. Infinite at 0 and 1; relative error below 1e-15
// elsewhere (Wichura, "Algorithm AS 241", Applied Statistics 37, 1988).
double normal_quantile(double probability);

}  // namespace tune
