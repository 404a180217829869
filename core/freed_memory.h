// The treatment of freed memory in a process that trains.
#pragma once

#include <malloc.h>

#include <initializer_list>

namespace tune {

// This process, and those forked from it, keep what they free for their next step. By default glibc
// gives large blocks back to the system and takes them again, a page fault for every 4 KiB: two
// thirds of all page faults of a ResNet-18 on CPUs, and several percent of its time.
//
// A malloc may refuse: glibc before 2.35 takes no larger own mappings than 32 MiB, others know no
// such option. Only what was taken is built on, as each option that is set ends glibc's own
// adjusting: with the trimming off and the mappings left at 128 KiB, every larger block would be
// mapped anew for ever, which is worse than to set nothing.
inline void keep_freed_memory(int (*set)(int option, int value) = mallopt) {
  constexpr int kNever = -1;
  // Each larger block gets a mapping of its own.
  for (const int largest : {1 << 30, 32 << 20}) {
    if (set(M_MMAP_THRESHOLD, largest) == 0) continue;
    set(M_TRIM_THRESHOLD, kNever);
    return;
  }
}

}  // namespace tune
