// Bytes that reach the port of the page's server: requests as its parser reads them, in two pieces;
// addresses, answered from an experiment's files; orders. And the columns that an answer holds, by
// the rules by which the page lays arrays over them.
#include <boost/asio/buffer.hpp>
#include <charconv>
#include <cstring>
#include <memory>

#include "core/json.h"
#include "fuzz/check.h"
#include "tune/view/api.h"
#include "tune/view/request.h"
#include "view/folder.h"

namespace {

using namespace tune;
using namespace tune::view;

constexpr std::string_view kSecret = "fedcba9876543210";
constexpr std::string_view kToken = "0123456789abcdef";

// An experiment of a few trials, as its files tell it.
struct Served {
  testing::TemporaryFolder folder;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Api> api;
  std::string key;

  Served() {
    testing::begin_experiment(folder.path() / "s");
    for (int i = 0; i < 3; ++i) {
      testing::add_trial(folder.path() / "s", i, R"({"lr":0.5,"act":"a"})",
                         "{\"loss\":3,\"x\":1}\n{\"loss\":null,\"x\":\"inf\"}\n");
      testing::append_text(folder.path() / "s" / "events.jsonl",
                           testing::event("attempt_started", i, R"(,"node":"a","gpus":[0])") +
                               testing::event("trial_ended", i, R"(,"status":"TERMINATED")"));
    }
    storage = std::make_unique<Storage>(folder.path());
    api = std::make_unique<Api>(*storage, "b00t", true);
    key = storage->list(Storage::Clock::now()).front().key;
    storage->open(key, Storage::Clock::now());
    while (storage->load(Storage::Clock::now() + std::chrono::seconds(1))) {
    }
  }
};

Served& served() {
  static Served one;
  return one;
}

std::size_t size_of(std::string_view type) {
  if (type == "f64") return 8;
  if (type == "f32" || type == "u32") return 4;
  fuzz::require(type == "u8", "a column's type is one that the page knows");
  return 1;
}

// As parseColumns() of page/data.js reads them.
void check_columns(std::string_view blob, bool are_rows) {
  fuzz::require(blob.size() >= 8 && blob.starts_with("TVC1"), "columns begin with their mark");
  std::uint32_t length = 0;
  std::memcpy(&length, blob.data() + 4, sizeof length);
  fuzz::require(length % 8 == 0 && length <= blob.size() - 8, "the header lies in the answer");
  const Value header = parse_json(blob.substr(8, length), "columns");
  const std::size_t room = blob.size() - 8 - length;
  std::int64_t rows = -1;
  for (const Value& column : header.at("columns").list()) {
    const std::size_t size = size_of(column.at("type").string());
    const auto at = static_cast<std::size_t>(column.at("at").integer());
    const std::int64_t count = column.at("count").integer();
    fuzz::require(at % size == 0, "a column begins where its numbers may lie");
    fuzz::require(at <= room && static_cast<std::size_t>(count) <= (room - at) / size,
                  "a column lies in the answer");
    fuzz::require(!are_rows || rows < 0 || rows == count, "all columns have a value of each row");
    rows = count;
  }
}

void answer(std::string_view target) {
  const Answer answer = served().api->answer(target, "\"b00t-0\"");
  fuzz::require(
      answer.status == 200 || answer.status == 304 || answer.status == 400 || answer.status == 404,
      "an address has an answer, or is refused");
  if (answer.status == 200 && answer.type == "application/octet-stream") {
    check_columns(answer.body, target.substr(0, target.find('?')).ends_with("/columns"));
  } else if (answer.type == "application/json" && answer.status != 304) {
    parse_json(answer.body, "an answer");
  }
}

void order(std::string_view body) {
  fuzz::refused_as(ErrorCode::kBadInput, [&] {
    const Value request = read_order(body).request;
    fuzz::require(request.is_map(), "an order is a map");
  });
}

// KEY stands for the experiment's.
std::string with_key(std::string text) {
  if (const auto at = text.find("KEY"); at != text.npos) text.replace(at, 3, served().key);
  return text;
}

void request(std::string_view bytes, bool allows_orders) {
  static const Guard reads(std::string(kToken), std::string(kSecret), {.port = 8311});
  static const Guard controls(std::string(kToken), std::string(kSecret),
                              {.port = 8311, .control = true});
  RequestParser parser;
  set_limits(parser, allows_orders);
  parser.eager(true);
  boost::system::error_code error;
  const std::size_t first = bytes.size() / 3;
  std::size_t read = parser.put(boost::asio::buffer(bytes.data(), first), error);
  if (error == boost::beast::http::error::need_more) error = {};
  if (!error && !parser.is_done()) {
    read += parser.put(boost::asio::buffer(bytes.data() + read, bytes.size() - read), error);
  }
  fuzz::require(read <= bytes.size(), "no more is read than came");
  if (error || !parser.is_done()) return;
  fuzz::require(parser.get().body().size() <= (allows_orders ? kMaxOrderBytes : 0),
                "a body has its limit");
  const Asked asked = asked_of(parser.get());
  const Pass pass = (allows_orders ? controls : reads).check(asked);
  if (pass.kind != Pass::Kind::kGranted) return;
  fuzz::require(bytes.find(kSecret) != bytes.npos || bytes.find(kToken) != bytes.npos,
                "nothing is granted without a secret");
  if (asked.method == "POST") {
    fuzz::require(allows_orders, "no order without --control");
    order(parser.get().body());
  } else {
    answer(with_key(asked.target));
  }
}

}  // namespace

TUNE_FUZZ_TARGET(page_server)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  if (text.starts_with('/')) {
    answer(with_key(std::string(text.substr(0, text.find('\n')))));
  } else if (text.starts_with('{')) {
    order(with_key(std::string(text)));
  } else {
    request(text, false);
    request(text, true);
  }
  return 0;
}
