// ColumnsBlob: columns as the page reads them without parsing: "TVC1", the length of a header, the
// header (JSON), then each column's numbers in the machine's order (little endian), at offsets that
// are multiples of 8, so that a browser lays typed arrays over them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"

namespace tune::view {

class ColumnsBlob {
 public:
  void add(std::string name, const std::vector<double>& numbers);
  void add(std::string name, const std::vector<float>& numbers);
  void add(std::string name, const std::vector<std::uint32_t>& numbers);
  void add(std::string name, const std::vector<std::uint8_t>& numbers);
  // The texts that the last column's numbers stand for.
  void add_words(const std::vector<std::string>& words);

  // `fields` stand in the header beside "columns".
  std::string finish(Value fields) const;

 private:
  template <class T>
  void add_numbers(std::string name, const char* type, const std::vector<T>& numbers);

  Value::List columns_;
  std::string bytes_;
};

}  // namespace tune::view
