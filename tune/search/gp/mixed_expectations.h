// What several models that are all as likely expect of the same points. Pure.
#pragma once

#include <vector>

#include "tune/search/proposal.h"

namespace tune::search::gp {

// One list for each model, at least one, each with an element for each point. Mean and deviation
// are those of the mixture of the models; the acquisition is the logarithm of the mean of what the
// acquisitions are logarithms of.
std::vector<Expectation> mixed(const std::vector<std::vector<Expectation>>& by_model);

}  // namespace tune::search::gp
