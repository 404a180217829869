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
#include "tune/analysis.h"
#include "tune/distributor.h"
#include "tune/options_from_args.h"
#include "tune/reporter.h"
#include "tune/run.h"
#include "tune/run_options.h"
#include "tune/search_space.h"
#include "tune/searcher.h"
