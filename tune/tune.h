// All that a torch-free user needs.
#pragma once

#include "core/error.h"
#include "core/value.h"
#include "schedulers/asha.h"
#include "schedulers/scheduler_spec.h"
#include "schedulers/trial_scheduler.h"
#include "trainables/registry.h"
#include "trainables/session.h"
#include "trainables/trainable.h"
#include "tune/distributor.h"
#include "tune/options_from_args.h"
#include "tune/results/analysis.h"
#include "tune/results/reporter.h"
#include "tune/run.h"
#include "tune/search/search_space.h"
#include "tune/search/searcher.h"
#include "tune/spec/run_options.h"
