// Images that lie in a folder for each class, as torchvision's ImageFolder takes them:
//
//   root/cat/1.jpg, root/cat/more/2.PNG, root/dog/3.jpeg, ...
//
// Classes are the folders directly below root, numbered in the order of their names' bytes. Their
// samples are the files below them, at any depth, whose names end in .jpg, .jpeg or .png in any
// case, in the order of their folders' paths, then of their names; others are left alone.
//
// Root may be an address in an S3 store, "s3://bucket/train": images are brought to a cache of this
// machine when they are wanted first (core/platform/object_cache.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainables/torch/dataset.h"
#include "trainables/torch/image_transforms.h"

namespace tune {

class ImageFolder : public Dataset {
 public:
  struct Sample {
    std::filesystem::path file;  // or its address
    std::int64_t label;          // the number of its class
  };

  // Lists the files, reads none. A random transform draws from (seed, epoch, index). Throws Error:
  // kIo when a folder or a store cannot be read; kBadInput when root holds no folder, or one without images.
  explicit ImageFolder(const std::filesystem::path& root,
                       ImageTransform transform = transforms::to_tensor(), std::uint64_t seed = 0);

  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }

  // {image, label}: what the transform makes of (3, H, W) uint8 RGB, by default floats in [0, 1];
  // and () int64. Floats are contiguous; bytes lie as they are in a file, channels last, and so
  // does a batch of them. Throws what read_image and the transform throw, with the file's name, and
  // Error (kIo) when it cannot be had from its store.
  Batch get(std::int64_t index) const override;

  void set_epoch(std::int64_t epoch) override { epoch_ = epoch; }

  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  using Files = std::vector<std::pair<std::string, std::string>>;  // folders and names
  void add_class(const std::string& name, Files files, const std::string& root);
  void list_folder(const std::filesystem::path& root);
  void list_store(const std::string& root);
  at::Tensor read(std::size_t index) const;

  ImageTransform transform_;
  std::uint64_t seed_;
  std::int64_t epoch_ = 0;
  std::vector<std::string> classes_;
  std::vector<Sample> samples_;
  struct Store;
  std::shared_ptr<Store> store_;  // null: the files are this machine's
};

// The same file as (3, H, W) uint8, channels last. Errors are those of read_image (image_file.h).
at::Tensor read_image_tensor(const std::filesystem::path& file);
// The same of a file's bytes; `name` is for the words of errors.
at::Tensor decode_image(std::string_view bytes, const std::string& name);

}  // namespace tune
