#include "tune/results/result_text.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/json.h"
#include "core/strings.h"

namespace tune {

namespace {

[[noreturn]] void nested_too_deeply() {
  throw Error(ErrorCode::kProtocol, "reading a result: it is nested deeper than " +
                                        std::to_string(kMaxNesting) + " levels");
}

void append_packed(std::string& out, PackReader& in, int depth) {
  if (depth > kMaxNesting) nested_too_deeply();
  const PackReader::Type type = in.peek();
  switch (type) {
    case PackReader::Type::kNull:
      in.null();
      out += "null";
      return;
    case PackReader::Type::kBool:
      out += in.boolean() ? "true" : "false";
      return;
    case PackReader::Type::kInt:
      return append_integer(out, in.integer());
    case PackReader::Type::kFloat:
      return append_json_number(out, in.number());
    case PackReader::Type::kText:
      return append_json_text(out, in.text());
    case PackReader::Type::kBinary:
      throw Error(ErrorCode::kProtocol, "reading a result: bytes where a value should be");
    case PackReader::Type::kArray:
    case PackReader::Type::kMap:
      break;
  }
  const bool is_map = type == PackReader::Type::kMap;
  out += is_map ? '{' : '[';
  const std::size_t count = is_map ? in.map() : in.array();
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    if (is_map) {
      append_json_text(out, in.text());
      out += ':';
    }
    append_packed(out, in, depth + 1);
  }
  out += is_map ? '}' : ']';
}

constexpr std::array<bool, 256> kPlainInCsv = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0; c < 0x80; ++c) plain[c] = c != ',' && c != '"' && c != '\r' && c != '\n';
  return plain;
}();
bool is_plain_in_csv(char c) {
  return kPlainInCsv[static_cast<unsigned char>(c)];
}

// `,"name":` of each field.
const std::array<std::string, kResultFieldNames.size()>& member_heads() {
  static const auto heads = [] {
    std::array<std::string, kResultFieldNames.size()> made;
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i].append(",\"").append(kResultFieldNames[i]).append("\":");
    }
    return made;
  }();
  return heads;
}

}  // namespace

std::size_t result_field_index(std::string_view key) {
  std::size_t i = 0;
  while (i < kResultFieldNames.size() && kResultFieldNames[i] != key) ++i;
  return i;
}

void append_packed_json(std::string& out, PackReader& in) {
  append_packed(out, in, 0);
}

void append_csv_text(std::string& out, std::string_view text) {
  if (std::ranges::all_of(text, is_plain_in_csv)) {
    out += text;
    return;
  }
  const bool quoted = text.find_first_of(",\"\r\n") != std::string_view::npos;
  if (quoted) out += '"';
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x80 && c != '"') {
      ++i;
      continue;
    }
    out.append(text, from, i - from);
    if (c == '"') out += '"';
    i += append_utf8(out, text.substr(i));
    from = i;
  }
  out.append(text, from);
  if (quoted) out += '"';
}

// ---- ResultText ---------------------------------------------------------------------------------

void ResultText::clear() {
  json_.clear();
  text_.clear();
  prefix_.clear();
  cells_.clear();
  seen_ = {};
}

std::string_view ResultText::path(std::size_t cell) const {
  const Cell& found = cells_[cell];
  return std::string_view(text_).substr(found.path, found.text - found.path);
}

std::string_view ResultText::text(std::size_t cell) const {
  const Cell& found = cells_[cell];
  return std::string_view(text_).substr(found.text, found.end - found.text);
}

void ResultText::add_members(std::string_view packed, ResultFields skipped) {
  PackReader in(packed);
  members(in, 0, skipped);
  in.expect_end();
}

void ResultText::members(PackReader& in, int depth, ResultFields skipped) {
  if (depth > kMaxNesting) nested_too_deeply();
  for (std::size_t left = in.map(); left > 0; --left) {
    const std::string_view key = in.text();
    if (depth == 0) {
      const std::size_t field = result_field_index(key);
      if (field < kResultFieldNames.size()) {
        if (skipped.has(field)) {
          in.skip();
          continue;
        }
        seen_ = seen_.with(static_cast<ResultField>(field));
      }
    }
    if (!json_.empty() && json_.back() != '{') json_ += ',';
    append_json_text(json_, key);
    json_ += ':';
    PackReader ahead = in;
    if (in.peek() == PackReader::Type::kMap && ahead.map() > 0) {
      const std::size_t outer = prefix_.size();
      prefix_.append(key).append(1, '/');
      json_ += '{';
      members(in, depth + 1, {});
      json_ += '}';
      prefix_.resize(outer);
    } else {
      begin_cell(key);
      leaf(in);
    }
  }
}

// A value that is one cell: anything but a map with members.
void ResultText::leaf(PackReader& in) {
  const std::size_t from = json_.size();
  switch (in.peek()) {
    case PackReader::Type::kNull:
      in.null();
      json_ += "null";
      text_ += null_text_;
      break;
    case PackReader::Type::kFloat: {
      const double value = in.number();
      append_json_number(json_, value);
      if (std::isfinite(value)) return end_cell_as_json(from);
      append_number(text_, value);
      break;
    }
    case PackReader::Type::kText: {
      const std::string_view value = in.text();
      append_json_text(json_, value);
      append_csv_text(text_, value);
      break;
    }
    case PackReader::Type::kArray:
      append_packed(json_, in, 0);
      append_csv_text(text_, std::string_view(json_).substr(from));
      break;
    default:
      append_packed(json_, in, 0);
      return end_cell_as_json(from);
  }
  cells_.back().end = static_cast<std::uint32_t>(text_.size());
}

void ResultText::begin_cell(std::string_view key) {
  const auto path = static_cast<std::uint32_t>(text_.size());
  if (!prefix_.empty()) text_ += prefix_;
  text_ += key;
  cells_.push_back({path, static_cast<std::uint32_t>(text_.size()), 0});
}

void ResultText::end_cell_as_json(std::size_t json_from) {
  text_.append(json_, json_from);
  cells_.back().end = static_cast<std::uint32_t>(text_.size());
}

bool ResultText::open(ResultField field) {
  const auto index = static_cast<std::size_t>(field);
  if (seen_.has(index)) return false;
  json_.append(member_heads()[index], json_.empty() ? 1 : 0);
  begin_cell(kResultFieldNames[index]);
  return true;
}

void ResultText::add(ResultField field, std::int64_t value) {
  if (!open(field)) return;
  const std::size_t from = json_.size();
  append_integer(json_, value);
  end_cell_as_json(from);
}

void ResultText::add(ResultField field, double value) {
  if (!open(field)) return;
  const std::size_t from = json_.size();
  append_json_number(json_, value);
  end_cell_as_json(from);
}

void ResultText::add(ResultField field, bool value) {
  if (!open(field)) return;
  const std::size_t from = json_.size();
  json_ += value ? "true" : "false";
  end_cell_as_json(from);
}

void ResultText::add(ResultField field, std::string_view value) {
  if (!open(field)) return;
  append_json_text(json_, value);
  append_csv_text(text_, value);
  cells_.back().end = static_cast<std::uint32_t>(text_.size());
}

}  // namespace tune
