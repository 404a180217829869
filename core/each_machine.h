// How a function becomes one for each instruction set, chosen when the program is loaded. With
// -ffp-contract=off their results are the same. Pure.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TUNE_FOR_EACH_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
// Marks one of several functions of a name, whose code differs. Missing where one is enough.
#define TUNE_FOR_MACHINE(set) __attribute__((target(set)))
#else
#define TUNE_FOR_EACH_MACHINE
#endif
// What such a function calls has to be part of it.
#define TUNE_INLINE [[gnu::always_inline]] inline
