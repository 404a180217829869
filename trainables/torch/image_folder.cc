#include "trainables/torch/image_folder.h"

#include <ATen/Functions.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/object_cache.h"
#include "core/s3_request.h"
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

std::vector<std::pair<std::string, std::string>> images_below(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (const auto& entry : fs::recursive_directory_iterator(folder, options)) {
    if (!is_image(entry.path()) || entry.is_directory()) continue;
    found.emplace_back(entry.path().parent_path().string(), entry.path().filename().string());
  }
  return found;
}

std::string content_of(const FileDescriptor& file, std::uint64_t bytes, const fs::path& path) {
  std::string content(bytes, '\0');
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t got = ::read(file.get(), content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw file_error("reading", path, got < 0 ? errno : EIO);
    done += static_cast<std::size_t>(got);
  }
  return content;
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

struct ImageFolder::Store {
  explicit Store(const std::string& address) : cache(address) {}
  ObjectCache cache;
  std::vector<S3Object> objects;  // of the samples, without their names, which these have
};

ImageFolder::ImageFolder(const fs::path& root, ImageTransform transform, std::uint64_t seed)
    : transform_(std::move(transform)), seed_(seed) {
  if (is_s3(root.string())) {
    list_store(root.string());
  } else {
    list_folder(root);
  }
  if (classes_.empty()) {
    throw Error(ErrorCode::kBadInput,
                root.string() + " has no folders: one for each class, with its images, is wanted");
  }
}

// Folder by folder, as Python's sorted(os.walk()) goes: by the folder's path, then by the name.
void ImageFolder::add_class(const std::string& name, Files files, const std::string& root) {
  if (files.empty()) {
    throw Error(ErrorCode::kBadInput,
                "class " + name + " of " + root + " has no images (.jpg, .jpeg, .png)");
  }
  std::sort(files.begin(), files.end());
  for (const auto& [parent, file] : files) {
    samples_.push_back({fs::path(parent) / file, static_cast<std::int64_t>(classes_.size())});
  }
  classes_.push_back(name);
}

void ImageFolder::list_folder(const fs::path& root) try {
  for (const std::string& name : folders_in(root)) {
    add_class(name, images_below(root / name), root.string());
  }
} catch (const fs::filesystem_error& error) {
  throw Error(ErrorCode::kIo,
              "listing images: " + error.path1().string() + ": " + error.code().message());
}

void ImageFolder::list_store(const std::string& root) {
  store_ = std::make_shared<Store>(root);
  ObjectCache& cache = store_->cache;
  const std::string folder = s3_folder(root);
  std::map<std::string, Files> classes;
  std::unordered_map<std::string, S3Object> listed;
  for (S3Object& object : cache.list(folder)) {
    const std::size_t slash = object.name.find('/', folder.size());
    if (slash == std::string::npos) continue;
    Files& files = classes[object.name.substr(folder.size(), slash - folder.size())];
    const fs::path address = cache.address_of(std::exchange(object.name, {}));
    if (!is_image(address)) continue;
    files.emplace_back(address.parent_path().string(), address.filename().string());
    listed[address.string()] = std::move(object);
  }
  for (auto& [name, files] : classes) add_class(name, std::move(files), root);
  for (const Sample& sample : samples_) {
    store_->objects.push_back(std::move(listed[sample.file.string()]));
  }
}

at::Tensor ImageFolder::read(std::size_t index) const {
  const Sample& sample = samples_[index];
  if (!store_) return read_image_tensor(sample.file);
  const std::string address = sample.file.string();
  S3Object object = store_->objects[index];
  object.name = address.substr(store_->cache.address_of("").size());
  if (object.bytes > static_cast<std::uint64_t>(kMaxImageFileBytes)) {
    throw Error(ErrorCode::kBadInput, "reading image " + address + ": it has " +
                                          std::to_string(object.bytes) + " bytes, at most " +
                                          std::to_string(kMaxImageFileBytes) + " are read");
  }
  return decode_image(content_of(store_->cache.open(object), object.bytes, sample.file),
                      address);
}

Batch ImageFolder::get(std::int64_t index) const {
  TUNE_CHECK(index >= 0);
  TUNE_CHECK(index < size());
  const Sample& sample = samples_[static_cast<std::size_t>(index)];
  const at::Tensor image = read(static_cast<std::size_t>(index));
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
