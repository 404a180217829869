#include "trainables/torch/safetensors.h"

#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "core/error.h"
#include "torch/torch_doctest.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

const std::filesystem::path kWrittenByPython =
    std::string(TUNE_SOURCE_DIR) + "/tests/torch/data/tensors.safetensors";

const at::Tensor& named(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return tensor;
  }
  throw Error(ErrorCode::kBadInput, "there is no " + name);
}

std::string refusal_to_read(const std::filesystem::path& file) {
  return testing::refusal([&] { read_safetensors(file); }, ErrorCode::kIo);
}

// A file with this header and so many bytes behind it.
void write_raw(const std::filesystem::path& file, const std::string& header, std::size_t bytes) {
  const std::uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  std::ofstream(file, std::ios::binary) << text << header << std::string(bytes, '\1');
}

TEST_CASE("what Python's safetensors wrote is read, value by value") {
  const NamedTensors tensors = read_safetensors(kWrittenByPython);
  CHECK(tensors.size() == 8);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK(named(tensors, "f64")
            .equal(torch::tensor({1.5, -2.5, kInfinity, 1e-300}, torch::kFloat64).view({2, 2})));
  CHECK(named(tensors, "f32").equal(torch::arange(6, torch::kFloat32).view({1, 2, 3}) / 4));
  CHECK(named(tensors, "f16").equal(torch::tensor({0.5, -65504.0}, torch::kHalf)));
  CHECK(named(tensors, "i64").equal(torch::tensor({-(1L << 62), 7L}, torch::kLong)));
  CHECK(named(tensors, "u8").equal(torch::tensor({0, 255}, torch::kByte).view({2, 1})));
  CHECK(named(tensors, "bool").equal(torch::tensor({1, 0, 1}, torch::kLong).to(torch::kBool)));
  CHECK(named(tensors, "scalar").equal(torch::tensor(3, torch::kInt)));
  CHECK(named(tensors, "empty").sizes() == at::IntArrayRef({0, 4}));
}

TEST_CASE("the same tensors give the same bytes behind the header that Python writes") {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "x.safetensors";
  write_safetensors(file, read_safetensors(kWrittenByPython));
  const std::string ours = testing::read_text(file);
  const std::string theirs = testing::read_text(kWrittenByPython);
  const auto data = [](const std::string& text) {
    std::uint64_t length = 0;
    std::memcpy(&length, text.data(), sizeof length);
    CHECK(length % 8 == 0);
    return text.substr(sizeof length + length);
  };
  CHECK(data(ours) == data(theirs));
}

TEST_CASE("tensors of any strides and types come back") {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "x.safetensors";
  const at::Tensor base = torch::arange(12, torch::kFloat32).view({3, 4}).requires_grad_();
  const NamedTensors written = {{"turned", base.t()},
                                {"row \"1\"", base[1]},
                                {"same", base},
                                {"half", base.to(torch::kBFloat16)},
                                {"none", torch::empty({0})}};
  write_safetensors(file, written);
  const NamedTensors read = read_safetensors(file);
  REQUIRE(read.size() == written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].first == written[i].first);
    CHECK(read[i].second.equal(written[i].second));
    CHECK(read[i].second.dtype() == written[i].second.dtype());
  }
}

TEST_CASE("a type without a word in the format is refused by the tensor's name") {
  const testing::TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(
      write_safetensors(folder.path() / "x", {{"wave", torch::zeros({2}, torch::kComplexFloat)}}),
      doctest::Contains("wave is of type ComplexFloat"), Error);
}

TEST_CASE("files that lie are refused by name and tensor, with nothing read beyond them") {
  const testing::TemporaryFolder folder;
  const auto file = folder.path() / "x.safetensors";
  const struct {
    const char* header;
    const char* message;
  } cases[] = {
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})", "a: its data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,0]}})", "a: its data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
       "a: its shape takes 12 bytes, but 8 are its own"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,8]}})",
       "a: its shape has a size of 9223372036854775807"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
       "a: its shape has a size of -2"},
      {R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})", "a: its type F99 is not known"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
       "a: its data_offsets are not within the 8 bytes"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "data_offsets"},
      {R"({"a":7})", "a: "},
      {R"([1])", "is not a map of tensors"},
      {R"({"a":)", "its header"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.header);
    write_raw(file, c.header, 8);
    const std::string message = refusal_to_read(file);
    CHECK_HAS(message, "x.safetensors");
    CHECK_HAS(message, c.message);
  }
  const std::string whole = testing::read_text(kWrittenByPython);
  for (std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{100}, whole.size() - 1}) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, length);
    CHECK_HAS(refusal_to_read(file), "x.safetensors");
  }
  CHECK(refusal_to_read(folder.path() / "nowhere").starts_with("cannot read"));
}

}  // namespace
}  // namespace tune
