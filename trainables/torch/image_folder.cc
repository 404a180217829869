#include "trainables/torch/image_folder.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "trainables/torch/image_file.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& file) {
  std::string extension = file.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

std::vector<std::string> folders_in(const fs::path& root) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Folder by folder, as Python's sorted(os.walk()) goes: by the folder's path, then by the name.
std::vector<fs::path> images_below(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (const auto& entry : fs::recursive_directory_iterator(folder, options)) {
    if (!is_image(entry.path()) || entry.is_directory()) continue;
    found.emplace_back(entry.path().parent_path().string(), entry.path().filename().string());
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> files;
  for (const auto& [parent, name] : found) files.push_back(fs::path(parent) / name);
  return files;
}

// A crop is a view: what is left of the image is not to be kept.
at::Tensor without_the_rest(const at::Tensor& image) {
  const bool is_bytes = image.scalar_type() == at::kByte && image.dim() == 3;
  return is_bytes ? image.permute({1, 2, 0}).contiguous().permute({2, 0, 1}) : image.contiguous();
}

at::Tensor tensor_of(Image read) {
  auto* image = new Image(std::move(read));
  return at::from_blob(
             image->pixels.data(), {image->height, image->width, 3},
             [image](void*) { delete image; }, at::kByte)
      .permute({2, 0, 1});
}

}  // namespace

ImageFolder::ImageFolder(const fs::path& root, ImageTransform transform, std::uint64_t seed)
    : transform_(std::move(transform)), seed_(seed) {
  try {
    classes_ = folders_in(root);
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      const std::vector<fs::path> files = images_below(root / classes_[i]);
      if (files.empty()) {
        throw Error(ErrorCode::kBadInput, "class " + classes_[i] + " of " + root.string() +
                                              " has no images (.jpg, .jpeg, .png)");
      }
      for (const fs::path& file : files) {
        samples_.push_back({file, static_cast<std::int64_t>(i)});
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCode::kIo,
                "listing images: " + error.path1().string() + ": " + error.code().message());
  }
  if (classes_.empty()) {
    throw Error(ErrorCode::kBadInput,
                root.string() + " has no folders: one for each class, with its images, is wanted");
  }
}

Batch ImageFolder::get(std::int64_t index) const {
  TUNE_CHECK(index >= 0);
  TUNE_CHECK(index < size());
  const Sample& sample = samples_[static_cast<std::size_t>(index)];
  const at::Tensor image = read_image_tensor(sample.file);
  RandomStream random(seed_, "image of epoch " + std::to_string(epoch_),
                      static_cast<std::uint64_t>(index));
  try {
    return {without_the_rest(transform_(image, random)),
            at::scalar_tensor(sample.label, at::kLong)};
  } catch (const Error& error) {
    throw Error(error.code(), "image " + sample.file.string() + ": " + error.what());
  }
}

at::Tensor read_image_tensor(const fs::path& file) {
  return tensor_of(read_image(file));
}

at::Tensor decode_image(std::string_view bytes, const std::string& name) {
  return tensor_of(read_image(bytes, name));
}

}  // namespace tune
