// LibTorch, doctest and what tests say with them in one file: LibTorch and doctest both have a
// CHECK, and LibTorch's, which ends the process, would win. To be included instead of
// <doctest/doctest.h> and "core/refusal.h".
#pragma once

#ifdef DOCTEST_LIBRARY_INCLUDED
#error "leave <doctest/doctest.h> and core/refusal.h to torch/torch_doctest.h: LibTorch comes first"
#endif

#include <tune/torch.h>
#undef CHECK

// After the other; the comment keeps clang-format from sorting it.
#include <doctest/doctest.h>

#include "core/refusal.h"
