#include "tune/drive/journal_reader.h"

#include <chrono>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLivePatience{1};     // with one store of a driver that runs,
constexpr std::chrono::seconds kDriverPatience{30};  // and with all that it may have

void check_parts(const fs::path& directory, const ExperimentSpec& spec) {
  const char* own = spec.options.scheduler.name().empty()  ? "scheduler"
                    : spec.options.searcher.name().empty() ? "searcher"
                                                           : nullptr;
  if (own == nullptr) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("{0}: its {1} is the program's own, so the journal cannot be read "
                          "without it: see {0}/results.csv, or `tune results`",
                          directory.string(), own));
}

void copy_journal(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy(from, to, fs::copy_options::recursive, error);
  if (!error) return;
  throw Error(ErrorCode::kIo, fmt::format("copying the journal from {} to {}: {}", from.string(),
                                          to.string(), error.message()));
}

RedisStoreOptions reader_options(const RunRecord& record) {
  RedisStoreOptions options;
  options.address = record.store;
  options.prefix = record.prefix;
  options.unsafe = true;  // reading needs no durability
  return options;
}

}  // namespace

JournalReader::JournalReader(const fs::path& directory, From from) {
  const ExperimentSpec spec = read_spec(directory);
  check_parts(directory, spec);
  const std::optional<RunRecord> record = read_record(directory);
  if (!record) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{}: the experiment has not begun yet", directory.string()));
  }
  record_ = *record;
  const bool is_private = spec.options.store.empty();
  if (is_private && from == From::kCopy) {
    read_copy(directory);
  } else {
    connect(directory, is_private);
  }
}

// A private store goes with its driver, which may end meanwhile; and for a moment after a resume
// the record is still the one of the driver before.
void JournalReader::connect(const fs::path& directory, bool is_private) {
  const auto end = std::chrono::steady_clock::now() + kDriverPatience;
  while (!is_private || is_live(directory)) {
    RedisStoreOptions options = reader_options(record_);
    if (is_private) options.timeout = kLivePatience;
    try {
      store_ = std::make_unique<RedisStore>(options);
      return;
    } catch (const Error&) {
      if (!is_private || std::chrono::steady_clock::now() > end) throw;
    }
    record_ = read_record(directory).value_or(record_);
  }
  read_copy(directory);
}

void JournalReader::read_copy(const fs::path& directory) {
  runtime_ = std::make_unique<RuntimeDirectory>();
  RedisServerOptions options;
  options.runtime_directory = runtime_->path();
  options.data_directory = runtime_->path() / "store";
  copy_journal(directory / "store", options.data_directory);
  server_ = std::make_unique<RedisServer>(options);
  record_.store = server_->address();
  store_ = std::make_unique<RedisStore>(reader_options(record_));
}

}  // namespace tune
