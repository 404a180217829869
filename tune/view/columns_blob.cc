#include "tune/view/columns_blob.h"

#include <bit>
#include <cstring>
#include <utility>

#include "core/json.h"

namespace tune::view {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "TVC1";

void pad(std::string& bytes) {
  bytes.resize((bytes.size() + 7) / 8 * 8, '\0');
}

}  // namespace

template <class T>
void ColumnsBlob::add_numbers(std::string name, const char* type, const std::vector<T>& numbers) {
  pad(bytes_);
  columns_.push_back(Value{
      {"name", std::move(name)}, {"type", type}, {"at", bytes_.size()}, {"count", numbers.size()}});
  const std::size_t length = numbers.size() * sizeof(T);
  const std::size_t at = bytes_.size();
  bytes_.resize(at + length);
  if (length > 0) std::memcpy(bytes_.data() + at, numbers.data(), length);
}

void ColumnsBlob::add(std::string name, const std::vector<double>& numbers) {
  add_numbers(std::move(name), "f64", numbers);
}
void ColumnsBlob::add(std::string name, const std::vector<float>& numbers) {
  add_numbers(std::move(name), "f32", numbers);
}
void ColumnsBlob::add(std::string name, const std::vector<std::uint32_t>& numbers) {
  add_numbers(std::move(name), "u32", numbers);
}
void ColumnsBlob::add(std::string name, const std::vector<std::uint8_t>& numbers) {
  add_numbers(std::move(name), "u8", numbers);
}

void ColumnsBlob::add_words(const std::vector<std::string>& words) {
  columns_.back().set("words", words);
}

std::string ColumnsBlob::finish(Value fields) const {
  fields.set("columns", Value::make_list(columns_));
  std::string header = to_json(fields);
  header.resize((header.size() + 7) / 8 * 8, ' ');  // the arrays begin at a multiple of 8
  const auto length = static_cast<std::uint32_t>(header.size());
  std::string blob(kMagic);
  blob.append(reinterpret_cast<const char*>(&length), sizeof length);
  return blob + header + bytes_;
}

}  // namespace tune::view
