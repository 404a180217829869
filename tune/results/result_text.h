// Results as text: from packed bytes straight to a line of JSON and to CSV cells, without building
// a tree of values. Pure. NaN is null in JSON and `nan` in CSV, infinities are "inf" and "-inf";
// bytes that are not UTF-8 become U+FFFD.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/wire.h"

namespace tune {

// The fields that are added to every result, in the order of the columns.
enum class ResultField : std::uint8_t {
  kTrainingIteration,
  kDone,
  kTrialId,
  kExperimentTag,
  kTimeThisIter,
  kTimeTotal,
  kTimeSinceRestore,
  kIterationsSinceRestore,
  kTimestepsTotal,
  kTimestamp,
  kDate,
  kHostname,
  kNodeIp,
  kPid,
};
inline constexpr std::array<std::string_view, 14> kResultFieldNames = {"training_iteration",
                                                                       "done",
                                                                       "trial_id",
                                                                       "experiment_tag",
                                                                       "time_this_iter_s",
                                                                       "time_total_s",
                                                                       "time_since_restore",
                                                                       "iterations_since_restore",
                                                                       "timesteps_total",
                                                                       "timestamp",
                                                                       "date",
                                                                       "hostname",
                                                                       "node_ip",
                                                                       "pid"};
// The field's place in kResultFieldNames; their number when it is none of them.
std::size_t result_field_index(std::string_view key);

// A set of them.
class ResultFields {
 public:
  ResultFields() = default;
  ResultFields(ResultField field) : bits_(1u << static_cast<unsigned>(field)) {}
  ResultFields with(ResultFields more) const { return ResultFields(bits_ | more.bits_); }
  bool has(std::size_t index) const { return bits_ >> index & 1; }

 private:
  explicit ResultFields(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

// One packed value. Throws Error (kProtocol) when it is malformed or nested deeper than
// kMaxNesting.
void append_packed_json(std::string& out, PackReader& in);
// Appends the text, quoted where RFC 4180 asks for it.
void append_csv_text(std::string& out, std::string_view text);

// One result on its way into both files; reused for the next one.
class ResultText {
 public:
  // The text for null in CSV: a null in a result may have been NaN.
  explicit ResultText(std::string_view null_text = "nan") : null_text_(null_text) {}

  void clear();
  // The members of a packed map, but for fields to skip. Throws Error (kProtocol) as
  // append_packed_json does.
  void add_members(std::string_view packed, ResultFields skipped = {});
  void skip(ResultFields fields) { seen_ = seen_.with(fields); }  // when they are added below
  // A field, unless the members had a key of that name.
  void add(ResultField field, std::int64_t value);
  void add(ResultField field, double value);
  void add(ResultField field, bool value);
  void add(ResultField field, std::string_view value);

  std::string_view json() const { return json_; }  // the members, without braces
  std::size_t cells() const { return cells_.size(); }
  std::string_view path(std::size_t cell) const;  // "loss/train"
  std::string_view text(std::size_t cell) const;  // as it stands in a CSV row

 private:
  struct Cell {
    std::uint32_t path, text, end;  // offsets in text_
  };

  bool open(ResultField field);
  void members(PackReader& in, int depth, ResultFields skipped);
  void leaf(PackReader& in);
  void begin_cell(std::string_view key);
  void end_cell_as_json(std::size_t json_from);

  std::string_view null_text_;  // of static life
  std::string json_;
  std::string text_;
  std::string prefix_;  // "loss/" while its members are read
  std::vector<Cell> cells_;
  ResultFields seen_;  // what is there, or is not to be
};

}  // namespace tune
