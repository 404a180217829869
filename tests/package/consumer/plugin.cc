#include "line.h"

TUNE_TRAINABLE(Line)
