#include "trainables/torch/python_file.h"

#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>

#include "core/error.h"
#include "trainables/torch/python_pickle.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using Kind = PickleObject::Kind;

constexpr std::size_t kMaxPickleBytes = 16u << 20;  // about 100,000 tensors
constexpr const char* kAdvice =
    ": write torch.save(model.state_dict(), \"model.pt\") in Python (PyTorch 1.6 or newer), or "
    "safetensors.torch.save_model(model, \"model.safetensors\")";

struct StorageType {
  std::string_view name;
  at::ScalarType type;
};
constexpr std::array kStorageTypes = {
    StorageType{"torch.FloatStorage", at::kFloat},
    StorageType{"torch.DoubleStorage", at::kDouble},
    StorageType{"torch.HalfStorage", at::kHalf},
    StorageType{"torch.BFloat16Storage", at::kBFloat16},
    StorageType{"torch.LongStorage", at::kLong},
    StorageType{"torch.IntStorage", at::kInt},
    StorageType{"torch.ShortStorage", at::kShort},
    StorageType{"torch.CharStorage", at::kChar},
    StorageType{"torch.ByteStorage", at::kByte},
    StorageType{"torch.BoolStorage", at::kBool},
    StorageType{"torch.ComplexFloatStorage", at::kComplexFloat},
    StorageType{"torch.ComplexDoubleStorage", at::kComplexDouble},
};

const StorageType* storage_type(std::string_view name) {
  const auto* found = std::ranges::find(kStorageTypes, name, &StorageType::name);
  return found == kStorageTypes.end() ? nullptr : found;
}

class Archive {
 public:
  explicit Archive(const fs::path& file) : reader_(file.string()) {}

  std::string text(const std::string& record, std::size_t limit) {
    const std::size_t size = reader_.getRecordSize(record);
    if (size > limit) {
      throw Error(ErrorCode::kIo, "its " + record + " has " + std::to_string(size) +
                                      " bytes, at most " + std::to_string(limit) + " are read");
    }
    std::string read(size, '\0');
    reader_.getRecord(record, read.data(), size);
    return read;
  }

  at::Tensor storage(const std::string& type, const std::string& key, std::int64_t values) {
    const StorageType* known = storage_type(type);
    if (known == nullptr) return {};
    const std::string record = "data/" + key;
    const std::size_t bytes = reader_.getRecordSize(record);
    const std::size_t width = c10::elementSize(known->type);
    if (values < 0 || bytes / width < static_cast<std::size_t>(values)) {
      throw Error(ErrorCode::kIo, "its " + record + " has " + std::to_string(bytes) +
                                      " bytes for " + std::to_string(values) + " values");
    }
    at::Tensor whole = at::empty({static_cast<std::int64_t>(bytes / width)}, known->type);
    reader_.getRecord(record, whole.mutable_data_ptr(), whole.nbytes());
    return whole;
  }

  bool is_of_this_byte_order() {
    return !reader_.hasRecord("byteorder") || text("byteorder", 16) == "little";
  }

 private:
  caffe2::serialize::PyTorchStreamReader reader_;
};

std::string what_it_is(const PickleObject& object) {
  switch (object.kind) {
    case Kind::kNumber:
      return "a number";
    case Kind::kText:
      return "a text";
    case Kind::kSequence:
      return "a list";
    case Kind::kDictionary:
      return "a dictionary";
    case Kind::kTensor:
      return "a tensor";
    default:
      return object.text;
  }
}

bool has_tensors(const PickleObject& object) {
  return object.kind == Kind::kDictionary && object.items.size() >= 2 &&
         object.items[1]->kind == Kind::kTensor;
}

[[noreturn]] void refuse_entry(const fs::path& file, const std::string& key,
                               const PickleObject& value) {
  const std::string start =
      "loading " + file.string() + ": its \"" + key + "\" is " + what_it_is(value);
  if (!has_tensors(value)) {
    throw Error(ErrorCode::kBadInput, start + ", a dictionary of tensors is wanted" + kAdvice);
  }
  throw Error(ErrorCode::kBadInput,
              start + " of tensors, not a tensor: if it is the model's, write " +
                  "torch.save(torch.load(file)[\"" + key + "\"], \"model.pt\") in Python");
}

NamedTensors tensors_in(const fs::path& file, const PickleObject& root) {
  if (root.kind != Kind::kDictionary) {
    throw Error(ErrorCode::kBadInput, "loading " + file.string() + ": it holds " +
                                          what_it_is(root) + ", a dictionary of tensors is wanted" +
                                          kAdvice);
  }
  // An entry that may be taken for the model is named before the entries beside it.
  for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
    if (has_tensors(root.item(i + 1))) refuse_entry(file, root.item(i).text, root.item(i + 1));
  }
  NamedTensors tensors;
  for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
    const PickleObject& key = root.item(i);
    const PickleObject& value = root.item(i + 1);
    if (key.kind != Kind::kText) {
      throw Error(ErrorCode::kBadInput, "loading " + file.string() + ": one of its keys is " +
                                            what_it_is(key) + ", names are wanted" + kAdvice);
    }
    if (value.kind != Kind::kTensor) refuse_entry(file, key.text, value);
    tensors.emplace_back(key.text, value.tensor);
  }
  return tensors;
}

void expect_zip(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in.is_open()) throw Error(ErrorCode::kIo, "cannot read " + file.string());
  std::array<char, 2> start{};
  in.read(start.data(), start.size());
  if (in && start == std::array{'P', 'K'}) return;
  throw Error(ErrorCode::kIo, "reading " + file.string() +
                                  ": it is not what torch.save of PyTorch " +
                                  "1.6 or newer writes" + kAdvice);
}

}  // namespace

NamedTensors read_torch_save(const fs::path& file) {
  expect_zip(file);
  const auto unreadable = [&](const std::string& cause) {
    return Error(ErrorCode::kIo, "reading " + file.string() + ": " + cause);
  };
  try {
    Archive archive(file);
    if (!archive.is_of_this_byte_order()) throw unreadable("its numbers are big-endian");
    const std::string bytes = archive.text("data.pkl", kMaxPickleBytes);
    const Pickle pickle(bytes,
                        [&](const std::string& type, const std::string& key, std::int64_t values) {
                          return archive.storage(type, key, values);
                        });
    return tensors_in(file, pickle.root());
  } catch (const c10::Error& error) {
    std::string cause = error.what_without_backtrace();
    cause.resize(std::min(cause.size(), cause.find('\n')));
    throw unreadable(cause);
  } catch (const Error& error) {
    if (std::string_view(error.what()).find(file.string()) != std::string_view::npos) throw;
    throw unreadable(error.what());
  }
}

}  // namespace tune
