// The engine ssh: agents on hosts that let this user in without a password.
#pragma once

#include "tune/drive/engine_words.h"

namespace tune {

EngineWords ssh_hosts(const PoolOptions& pool, const EnginePlace& place);

}  // namespace tune
