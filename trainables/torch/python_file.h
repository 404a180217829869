// The tensors that Python's torch.save wrote: a zip of one pickle, which says what there is, and
// the bytes of each storage.
//
// LibTorch's own torch::pickle_load makes None of an OrderedDict, which is what state_dict() gives.
// So this reads the pickle itself. It makes dictionaries, lists, numbers, texts and tensors of it,
// and remembers the name of everything else, without calling or importing anything.
#pragma once

#include <filesystem>

#include "trainables/torch/safetensors.h"

namespace tune {

// A dictionary of tensors, as torch.save(model.state_dict(), file) writes it (PyTorch 1.6 or
// newer), in its order; on the CPU, on whatever device they were. Tensors that share their memory
// in the file share it here. Throws Error that names the file: kIo when it cannot be read, is cut
// or in another format; kBadInput when it holds something else, with what to call in Python
// instead.
NamedTensors read_torch_save(const std::filesystem::path& file);

}  // namespace tune
