// Everything that a user of LibTorch needs beside tune/tune.h. Not for files that include fmt:
// LibTorch ships a newer fmt, which would be taken instead.
#pragma once

#include <torch/torch.h>

#include "trainables/torch/checkpoint.h"
#include "trainables/torch/compiled_model.h"
#include "trainables/torch/data_loader.h"
#include "trainables/torch/dataset.h"
#include "trainables/torch/device.h"
#include "trainables/torch/distributed_data_parallel.h"
#include "trainables/torch/fused_optimizers.h"
#include "trainables/torch/grad_scaler.h"
#include "trainables/torch/gradient_clipping.h"
#include "trainables/torch/image_folder.h"
#include "trainables/torch/image_transforms.h"
#include "trainables/torch/learning_rate.h"
#include "trainables/torch/metrics.h"
#include "trainables/torch/mixed_precision.h"
#include "trainables/torch/parameter_groups.h"
#include "trainables/torch/process_group.h"
#include "trainables/torch/random.h"
#include "trainables/torch/record_shards.h"
#include "trainables/torch/safetensors.h"
#include "trainables/torch/sampler.h"
#include "trainables/torch/script_model.h"
#include "trainables/torch/sync_batch_norm.h"
#include "trainables/torch/torch_trainer.h"
#include "trainables/torch/training_operator.h"
#include "trainables/torch/training_step.h"
#include "trainables/torch/weight_average.h"
