// The plugin that config/fashion_mnist.yaml names.
#include "fashion_mnist.h"

TUNE_TRAINABLE(FashionMnist)
