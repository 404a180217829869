// Streams of records; the shards are data/records.py's.
#include "trainables/torch/record_shards.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"
#include "trainables/torch/training_run.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using testing::refusal;

const std::string kRecords = std::string(TUNE_SOURCE_DIR) + "/tests/torch/data/records";

// Its number, and how many letters it has.
Batch number_and_letters(const Record& record, RandomStream&) {
  return {torch::tensor({std::stof(record.at("cls"))}),
          torch::tensor(static_cast<std::int64_t>(record.at("data.txt").size()))};
}

std::shared_ptr<RecordShards> ten_records(std::int64_t buffer = 4) {
  return std::make_shared<RecordShards>(shards_in(kRecords), number_and_letters,
                                        RecordShardsOptions{.shuffle_buffer = buffer});
}

std::vector<std::int64_t> numbers_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.to(at::kLong).contiguous().view(-1);
  return {whole.const_data_ptr<std::int64_t>(),
          whole.const_data_ptr<std::int64_t>() + whole.numel()};
}

TEST_CASE("records of Python's tar files are read in all of its formats") {
  const auto data = ten_records();
  CHECK(data->shard_sizes() == std::vector<std::int64_t>{4, 3, 3});
  REQUIRE(data->size() == 10);
  for (std::int64_t i = 0; i < 10; ++i) {
    CAPTURE(i);
    const Record record = data->read(i);
    const std::string name = std::to_string(i);
    CHECK(record.key.substr(record.key.rfind('/') + 1) == name);
    CHECK((record.key.size() > 300) == (i >= 4));
    CHECK(record.files ==
          std::map<std::string, std::string>{
              {"cls", name}, {"data.txt", std::string(static_cast<std::size_t>(i), 'x')}});
  }
  const Batch batch = data->get_batch(torch::tensor({7, 2}));
  CHECK(numbers_of(batch.data) == std::vector<std::int64_t>{7, 2});
  CHECK(numbers_of(batch.target) == std::vector<std::int64_t>{7, 2});
}

TEST_CASE("each record of a stream is one rank's, and all ranks have equally many") {
  const std::vector<std::int64_t> sizes{3, 0, 5, 2, 1};  // 11
  for (const std::int64_t ranks : {1, 2, 3, 4, 12}) {
    for (const std::int64_t epoch : {0, 1}) {
      CAPTURE(ranks);
      std::multiset<std::int64_t> padded, whole;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        DistributedSamplerOptions options{.rank = rank, .world_size = ranks, .seed = 3};
        ShardSampler sampler(sizes, options, 3);
        sampler.set_epoch(epoch);
        CHECK(sampler.indices().numel() == (11 + ranks - 1) / ranks);
        for (const std::int64_t one : numbers_of(sampler.indices())) padded.insert(one);
        options.pad = false;
        ShardSampler each(sizes, options, 3);
        each.set_epoch(epoch);
        CHECK(each.indices().numel() == each.size());
        for (const std::int64_t one : numbers_of(each.indices())) whole.insert(one);
      }
      CHECK(std::set<std::int64_t>(padded.begin(), padded.end()).size() == 11);
      CHECK(whole.size() == 11);
      CHECK(std::set<std::int64_t>(whole.begin(), whole.end()).size() == 11);
    }
  }
}

TEST_CASE("a rank reads few shards, and draws from the records just ahead") {
  const std::vector<std::int64_t> sizes(10, 100);
  DistributedSamplerOptions options{.rank = 1, .world_size = 4, .seed = 5};
  const auto shards_of = [](const std::vector<std::int64_t>& order) {
    std::set<std::int64_t> shards;
    for (const std::int64_t one : order) shards.insert(one / 100);
    return shards.size();
  };
  ShardSampler sampler(sizes, options, 20);
  const std::vector<std::int64_t> order = numbers_of(sampler.indices());
  CHECK(shards_of(order) <= 4);  // 250 records lie in three or four shards of 100
  options.shuffle = false;
  CHECK(numbers_of(ShardSampler(sizes, options).indices())[0] == 250);
  options.shuffle = true;
  // With a buffer of one the stream itself: by it, no record comes before its turn by 20.
  const std::vector<std::int64_t> stream = numbers_of(ShardSampler(sizes, options, 1).indices());
  CHECK(order != stream);
  std::map<std::int64_t, std::ptrdiff_t> place;
  for (std::size_t i = 0; i < stream.size(); ++i) place[stream[i]] = static_cast<std::ptrdiff_t>(i);
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK(place.at(order[i]) < static_cast<std::ptrdiff_t>(i) + 20);
  }
  sampler.set_epoch(1);
  CHECK(numbers_of(sampler.indices()) != order);
  sampler.set_epoch(0);
  CHECK(numbers_of(sampler.indices()) == order);
}

TEST_CASE("a loader goes on within an epoch of a stream, with threads as without") {
  const auto batches_of = [](DataLoader& loader) {
    std::vector<std::vector<std::int64_t>> batches;
    for (const Batch& batch : loader) {
      CHECK(batch.data.view(-1).to(at::kLong).equal(batch.target));
      batches.push_back(numbers_of(batch.data));
    }
    return batches;
  };
  for (const int workers : {0, 3}) {
    CAPTURE(workers);
    const auto data = ten_records();
    DataLoader loader(data, data->sampler({.seed = 1}), {.batch_size = 2, .workers = workers});
    const auto whole = batches_of(loader);
    CHECK(whole.size() == 5);
    loader.set_epoch(0);
    loader.next();
    loader.next();
    const Value state = loader.state();
    const auto again = ten_records();
    DataLoader resumed(again, again->sampler({.seed = 1}), {.batch_size = 2, .workers = workers});
    resumed.load_state(state);
    CHECK(batches_of(resumed) ==
          std::vector<std::vector<std::int64_t>>(whole.begin() + 2, whole.end()));
  }
}

class StreamOperator : public TrainingOperator {
 public:
  void setup(const Config&) override {
    torch::nn::Linear net(1, 1);
    register_training({.models = {net},
                       .optimizers = {std::make_shared<torch::optim::SGD>(net->parameters(), 1e-3)},
                       .criterion = torch::nn::MSELoss()});
    register_data({.train = std::make_shared<RecordShards>(
                       shards_in(kRecords),
                       [](const Record& record, RandomStream& random) -> Batch {
                         const float number = std::stof(record.at("cls"));
                         return {torch::tensor({number + static_cast<float>(random.uniform())}),
                                 torch::tensor({number})};
                       }),
                   .batch_size = 2,
                   .report_every = 2});
  }
};

TEST_CASE("a training on a stream goes on where its checkpoint was made, within an epoch") {
  const testing::TemporaryFolder folder;
  TrainingRun run(std::make_unique<StreamOperator>(), {}, {}, {});
  run.train();
  run.save(folder.path());
  const double next = run.train().get<double>("train_loss");
  TrainingRun resumed(std::make_unique<StreamOperator>(), {}, {}, {});
  resumed.load(folder.path());
  CHECK(resumed.train().get<double>("train_loss") == next);
}

TEST_CASE("shards that cannot be read are refused, and say what is wrong with which") {
  const testing::TemporaryFolder folder;
  const auto error = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder.path() / name, std::ios::binary) << bytes;
    return refusal([&] { RecordShards data({folder.path() / name}, number_and_letters); });
  };
  std::string good;
  {
    std::ifstream in(kRecords + "/a.tar", std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
  }
  CHECK_HAS(error("text.tar", std::string(2000, 'x')), "there is no header of a tar file");
  CHECK_HAS(error("cut.tar", good.substr(0, 600)), "it is cut off");
  CHECK_HAS(error("short.tar", good.substr(0, 100)), "it is cut off");
  CHECK_HAS(error("gzip.tar", "\x1f\x8b" + std::string(1000, 'x')), "gzip -d");
  CHECK_HAS(error("empty.tar", std::string(1024, '\0')), "there are no records in 1 shards");
  std::string damaged = good;
  damaged[0] = 'y';
  CHECK_HAS(error("damaged.tar", damaged), "there is no header of a tar file");
  CHECK_HAS(refusal([&] { shards_in(folder.path() / "absent"); }, ErrorCode::kIo), "listing");
  const testing::TemporaryFolder none;
  CHECK_HAS(refusal([&] { shards_in(none.path()); }), "has no shards");
  CHECK_HAS(refusal([&] { RecordShards data({none.path() / "a.tar"}, number_and_letters); },
                    ErrorCode::kIo),
            "a.tar");
  CHECK_HAS(refusal([] { ten_records(0); }), "shuffle_buffer of records is 0");
}

TEST_CASE("a record that a decoder cannot take is named") {
  const auto error = [](const RecordDecoder& decode) {
    const RecordShards data(shards_in(kRecords), decode);
    return refusal([&] { data.get(2); });
  };
  const std::string lacks = error([](const Record& record, RandomStream&) -> Batch {
    return {torch::tensor({std::stof(record.at("label"))}), {}};
  });
  CHECK_HAS(lacks, "record 2 of ");
  CHECK_HAS(lacks, "a.tar: it has no file .label, but cls, data.txt");
  CHECK_HAS(error([](const Record& record, RandomStream&) -> Batch {
              return {torch::tensor({std::stof(record.at("data.txt"))}), {}};
            }),
            "record 2 of ");
  CHECK_HAS(error([](const Record& record, RandomStream&) -> Batch {
              return {decode_image(record.at("cls"), record.key), {}};
            }),
            "reading image 2: it is neither a JPEG nor a PNG");
}

TEST_CASE("a shard that became shorter while it is read is an error") {
  const testing::TemporaryFolder folder;
  const fs::path file = folder.path() / "a.tar";
  fs::copy_file(kRecords + "/a.tar", file);
  const RecordShards data({file}, number_and_letters);
  fs::resize_file(file, 1024);
  CHECK_HAS(refusal([&] { data.get(3); }), "it has become shorter");
}

TEST_CASE("images are decoded from bytes as from a file") {
  const fs::path folder = std::string(TUNE_SOURCE_DIR) + "/tests/torch/data/images";
  int images = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".png") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    at::Tensor whole;
    try {
      whole = read_image_tensor(entry.path());
    } catch (const Error&) {
      continue;  // one that is broken on purpose
    }
    CHECK(decode_image(bytes, "it").equal(whole));
    ++images;
  }
  CHECK(images > 0);
}

}  // namespace
}  // namespace tune
