// A rank of a program that links tune::torch and calls nothing of it.
#include <cstdio>
#include <exception>

#include "core/rank_start.h"

int main() {
  try {
    tune::begin_rank();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  std::puts("begins");
}
