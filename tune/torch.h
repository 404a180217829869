// What training with LibTorch needs beside <tune/tune.h>. Takes long to compile: few files should
// include it.
#pragma once

#include <torch/torch.h>

#include "trainables/torch/checkpoint.h"
