// LibTorch and doctest in one file: both have a CHECK, and LibTorch's, which ends the process,
// would win. To be included instead of the two.
#pragma once

#include <tune/torch.h>
#undef CHECK

// After the other; the comment keeps clang-format from sorting it.
#include <doctest/doctest.h>
