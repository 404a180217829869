// OptionReader: takes the keys of one map of options, one by one. A mistake becomes a complaint
// with its key path, and so does every key that was not taken; nothing is thrown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

class OptionReader {
 public:
  // `path` is the place of the map ("checkpoint"; empty: the top). Anything but a map is a
  // complaint and reads as an empty map. `map` must outlive the reader.
  OptionReader(const Value& map, std::string path, std::vector<Complaint>& complaints);

  // The value of a known key; null when it is absent. A key without a value is a complaint.
  const Value* take(const char* key);

  // The target keeps what it holds when the key is absent or wrong.
  void read(const char* key, bool& target);
  void read(const char* key, int& target);
  void read(const char* key, std::optional<int>& target);
  void read(const char* key, std::int64_t& target);
  void read(const char* key, double& target);  // whole numbers too
  void read(const char* key, std::optional<double>& target);
  void read(const char* key, std::string& target);
  void read(const char* key, std::vector<std::string>& target);

  // Complains about every key that was not taken, with the nearest known one.
  void finish();

  void complain(std::string_view key, std::string message);
  std::string path_of(std::string_view key) const;
  std::vector<Complaint>& complaints() { return *complaints_; }

 private:
  void wrong_type(const char* key, const char* expected, const Value& found);

  const Value* map_;
  std::string path_;
  std::vector<Complaint>* complaints_;
  std::vector<std::string> known_;
};

// For messages: "the text 'abc'", "0.5", "a list".
std::string describe_value(const Value& value);
// " (did you mean 'max_t'?)" or nothing.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known);
std::string join_path(std::string_view parent, std::string_view key);

}  // namespace tune
