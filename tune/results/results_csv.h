// results.csv: one row a trial with trial_id, status, its last result and its configuration. It is
// the same whether it is made at the end from memory or later from result.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/trial.h"
#include "tune/results/columns.h"
#include "tune/results/last_results.h"
#include "tune/results/result_text.h"
#include "tune/spec/experiment_spec.h"

namespace tune {

// Rows are held as text. Large results are made twice instead: memory does not grow with their
// size.
class ResultsTable {
 public:
  // Makes a result without its trial's id; leaves it empty for a trial that never reported.
  using Make = std::function<void(ResultText&)>;
  // A line of result.json; empty: no result. `where` names it in errors.
  static void read_line(ResultText& text, std::string_view line, const std::string& where);

  void add(std::string id, TrialStatus status, const Make& make, const Packed& config);
  // Writes the table in pieces.
  void write(const std::function<void(std::string_view)>& sink);
  std::string to_csv();

 private:
  // The cells of a result or a configuration, in their own order.
  struct Cells {
    std::uint32_t layout = 0;  // of layouts_
    std::string text;          // with commas between them
  };
  struct Row {
    std::string id;
    TrialStatus status;
    Cells result;
    Cells config;
  };
  // The key paths of a row, held once for all rows that share them, as most do.
  struct Layout {
    std::vector<std::string> paths;
    std::vector<std::int32_t> cell_of_column;  // -1: none
    bool is_in_order = false;                  // its cells are the columns
  };

  // The results, or the configurations, of all rows.
  class Part {
   public:
    explicit Part(std::string_view null_text) : text_(null_text) {}
    ResultText& cleared();            // to be filled
    Cells cells(bool keeps_text);     // of what was filled in, whose columns are learned
    std::size_t bytes() const;        // of its cells
    void arrange(bool fields_first);  // once, before rows are written
    void append_header(std::string& out, std::string_view prefix) const;
    void append(std::string& out, const Cells& cells);

   private:
    std::uint32_t layout();
    void place(Layout& layout) const;

    ResultText text_;
    Columns columns_;
    std::vector<Layout> layouts_;
    std::map<std::string, std::uint32_t> index_;  // of layouts_, by all paths
    std::uint32_t last_ = 0;
    bool is_arranged_ = false;
    std::vector<std::string_view> cut_;
  };

  std::deque<Row> rows_;
  std::map<std::size_t, Make> large_;  // by row
  Part results_{"nan"};
  Part configs_{""};
};

// Writes the file as a whole or not at all. The trials' folders stand beside `file`, and hold every
// result. Throws Error (kIo) naming the file.
void write_results_csv(const std::filesystem::path& file, const ExperimentSpec& spec,
                       const std::deque<Trial>& trials, LastResults& last);

}  // namespace tune
