// Training data in an S3 store: what comes of it is what comes of the same files in a folder.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "s3_stand.h"
#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"
#include "trainables/torch/record_shards.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::refusal;
using testing::S3Found;
using testing::S3Stand;

const fs::path kFolder = TUNE_SOURCE_DIR "/tests/torch/data";

// A store, and a cache of this machine.
struct StoredData {
  StoredData() { ::setenv("TUNE_DATA_CACHE", cache.path().c_str(), 1); }
  ~StoredData() { ::unsetenv("TUNE_DATA_CACHE"); }

  void put(const fs::path& file, const std::string& key) {
    stand.put(key, testing::read_text(file));
  }
  // Requests for the content of objects.
  std::size_t reads() const {
    const auto all = stand.requests();
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [](const std::string& one) { return one.starts_with("GET /checkpoints/data/"); }));
  }
  // What is left has not the objects themselves, but what was made of them.
  void forget_objects() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(cache.path() / "objects")) {
      if (entry.is_regular_file() && entry.path().extension() != ".index") {
        files.push_back(entry.path());
      }
    }
    for (const fs::path& file : files) fs::remove(file);
  }

  S3Stand stand;
  S3Found found{stand.environment()};
  testing::TemporaryFolder cache;
};

struct StoredRecords : StoredData {
  StoredRecords() {
    for (const char* name : {"a.tar", "b.tar", "c.tar"}) {
      put(kFolder / "records" / name, std::string("data/records/") + name);
    }
    stand.put("data/records/notes.txt", "not a shard");
    stand.put("data/records/more/d.tar", "not in this folder");
  }
};

Batch number_of(const Record& record, RandomStream& random) {
  return {torch::tensor({std::stof(record.at("cls"))}),
          torch::tensor({static_cast<float>(random.uniform())})};
}

RecordShards stored_records() {
  return RecordShards(shards_in("s3://checkpoints/data/records"), number_of);
}

bool are_alike(const RecordShards& a, const RecordShards& b) {
  if (a.shard_sizes() != b.shard_sizes()) return false;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const Record one = a.read(i), other = b.read(i);
    if (one.key != other.key || one.files != other.files) return false;
    if (!a.get(i).target.equal(b.get(i).target)) return false;
  }
  return true;
}

TEST_CASE("records of a store are those of the same shards in a folder, and are brought once") {
  const StoredRecords place;
  const RecordShards local(shards_in(kFolder / "records"), number_of);
  const RecordShards stored = stored_records();
  CHECK(are_alike(stored, local));
  CHECK(stored.read(0).shard == "s3://checkpoints/data/records/a.tar");
  CHECK(place.reads() == 3);
  CHECK(are_alike(stored_records(), local));  // another trial on this machine
  CHECK(place.reads() == 3);
}

TEST_CASE("what is known of a shard's records stays though the shard had to go") {
  const StoredRecords place;
  const RecordShards local(shards_in(kFolder / "records"), number_of);
  stored_records();
  place.forget_objects();
  const RecordShards again = stored_records();
  CHECK(place.reads() == 3);
  CHECK(again.read(9).files == local.read(9).files);
  CHECK(place.reads() == 4);  // the last shard alone
  // An index that was damaged is read anew.
  for (const std::string text : {"", "4\n0 5\n", "nonsense", "1\n0 99999999\nend\n"}) {
    for (const auto& entry : fs::recursive_directory_iterator(place.cache.path() / "objects")) {
      if (entry.path().extension() == ".index") std::ofstream(entry.path()) << text;
    }
    CAPTURE(text);
    CHECK(are_alike(stored_records(), local));
  }
}

TEST_CASE("a loader's threads read records of a store") {
  const StoredRecords place;
  const auto data = 
      std::make_shared<RecordShards>(shards_in("s3://checkpoints/data/records"), number_of);
  const auto shuffled = [&](int workers) {
    DataLoader loader(data, data->sampler({.seed = 1}), {.batch_size = 2, .workers = workers});
    std::vector<at::Tensor> batches;
    for (const Batch& batch : loader) batches.push_back(batch.data);
    return torch::cat(batches);
  };
  CHECK(shuffled(3).equal(shuffled(0)));
}

TEST_CASE("shards of a store that cannot be had are refused by address") {
  StoredRecords place;
  CHECK_HAS(refusal([] { shards_in("s3://checkpoints/data/none"); }),
            "s3://checkpoints/data/none has no shards");
  const auto of = [](const char* address) { return RecordShards({address}, number_of); };
  CHECK_HAS(refusal([&] { of("s3://checkpoints/data/records/x.tar"); }, ErrorCode::kIo),
            "s3://checkpoints/data/records/x.tar: it is not there");
  CHECK_HAS(refusal([&] { of("s3://checkpoints/data/records/notes.txt"); }),
            "s3://checkpoints/data/records/notes.txt");
  CHECK_HAS(refusal([&] { of("s3:/x.tar"); }, ErrorCode::kIo), "s3:/x.tar");  // a path
  const RecordShards listed = stored_records();
  place.forget_objects();
  place.put(kFolder / "records" / "b.tar", "data/records/a.tar");
  const RecordShards newer = stored_records();
  CHECK(newer.shard_sizes() == std::vector<std::int64_t>{3, 3, 3});
  place.stand.refuse(403, "AccessDenied");
  CHECK_HAS(refusal([] { stored_records(); }, ErrorCode::kIo), "AccessDenied");
}

TEST_CASE("images of a store are those of the same folder") {
  StoredData place;
  const testing::TemporaryFolder root;
  const auto put = [&](const char* from, const char* to) {
    fs::create_directories((root.path() / to).parent_path());
    fs::copy_file(kFolder / "images" / from, root.path() / to);
    place.put(kFolder / "images" / from, std::string("data/images/") + to);
  };
  put("palette.png", "dog/b.PNG");
  put("grey.png", "dog/a.jpeg");
  put("rgb.jpg", "dog/more/a & b.jpg");
  put("alpha.png", "Zebra/z.png");
  put("rgb.png", "cat/1.png");
  place.stand.put("data/images/cat/notes.txt", "not an image");
  place.stand.put("data/images/top.png", "not in a class");
  const ImageFolder local(root.path());
  const std::string address = "s3://checkpoints/data/images";
  const ImageFolder stored(address + "/");
  CHECK(stored.classes() == local.classes());
  REQUIRE(stored.size() == local.size());
  for (std::int64_t i = 0; i < local.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    CAPTURE(i);
    CHECK(stored.samples()[at].file ==
          fs::path(address) / fs::relative(local.samples()[at].file, root.path()));
    CHECK(stored.samples()[at].label == local.samples()[at].label);
    CHECK(stored.get(i).data.equal(local.get(i).data));
  }
  CHECK(place.reads() == 5);
  const auto later = std::make_shared<ImageFolder>(
      address, transforms::compose({transforms::resize(8), transforms::center_crop(8),
                                    transforms::to_tensor()}));
  DataLoader loader(later, std::make_shared<DistributedSampler>(5, DistributedSamplerOptions{}),
                    {.batch_size = 2, .workers = 3});
  std::int64_t count = 0;
  for (const Batch& batch : loader) count += batch.data.size(0);
  CHECK(count == 5);
  CHECK(place.reads() == 5);

  place.stand.put("data/images/eel/broken.jpg", "\xff\xd8\xff");
  const ImageFolder broken(address);
  CHECK_HAS(refusal([&] { broken.get(broken.size() - 1); }),
            "s3://checkpoints/data/images/eel/broken.jpg");
  place.stand.put("data/images/fox/notes.txt", "");
  CHECK(refusal([&] { ImageFolder{address}; }) ==
        "class fox of " + address + " has no images (.jpg, .jpeg, .png)");
  CHECK_HAS(refusal([] { ImageFolder{"s3://checkpoints/none"}; }),
            "s3://checkpoints/none has no folders: one for each class");
}

}  // namespace
}  // namespace tune
