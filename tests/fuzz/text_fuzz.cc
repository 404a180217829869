// Small texts: addresses of stores, ids of entries, CSV, the first line chooses which.
#include <string>
#include <vector>

#include "core/store.h"
#include "core/store_address.h"
#include "fuzz/check.h"
#include "tune/results/csv.h"
#include "tune/spec/yaml_tree.h"

namespace {

using namespace tune;

void read_csv(std::string_view text) {
  std::size_t bytes = 0;
  const std::size_t all = text.size();
  for (std::vector<std::string> row; next_csv_row(text, row);) {
    fuzz::require(!row.empty(), "a row has a cell");
    for (const std::string& cell : row) bytes += cell.size();
  }
  fuzz::require(bytes <= all, "cells hold no more than the text");
}

void read_address(std::string_view text) {
  const StoreAddress address = parse_store_address(text);
  fuzz::require(!shown(address).empty(), "an address can be shown");
}

void read_entry_id(std::string_view text) {
  const auto id = parse_entry_id(text);
  if (id) fuzz::require(parse_entry_id(to_string(*id)) == id, "an id reads back");
}

}  // namespace

TUNE_FUZZ_TARGET(text)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  read_csv(text);
  read_entry_id(text);
  fuzz::refused_as(ErrorCode::kBadInput, [&] { read_address(text); });
  fuzz::refused_as(ErrorCode::kBadInput, [&] { yaml_scalar(std::string(text)); });
  return 0;
}
