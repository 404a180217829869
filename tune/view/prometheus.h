// The opened experiments in Prometheus's text format. No trial is a label: their number would grow
// without bound.
#pragma once

#include <string>

#include "tune/view/storage.h"

namespace tune::view {

std::string prometheus_text(const Storage& storage);

}  // namespace tune::view
