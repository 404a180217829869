// Named tensors as a safetensors file (https://github.com/huggingface/safetensors#format): the
// length of a header as 8 bytes, little-endian, a header in JSON, then the tensors' bytes. Python
// reads it by safetensors.torch.load_file, and nothing in such a file is ever executed.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tune {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Tensors of any device and strides; each is written whole, also when several share a storage.
// Throws Error: kBadInput for a type that the format has no word for (complex, quantised), kIo when
// it cannot be written.
void write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors);

// On the CPU, in the order of the header. Throws Error (kIo) that names the file when it cannot be
// read, is cut, or is not such a file.
NamedTensors read_safetensors(const std::filesystem::path& file);

}  // namespace tune
