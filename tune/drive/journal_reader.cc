#include "tune/drive/journal_reader.h"

#include <chrono>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLivePatience{2};

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

}  // namespace

RedisStoreOptions reader_options(const RunRecord& record) {
  RedisStoreOptions options;
  options.address = record.store;
  options.prefix = record.prefix;
  options.unsafe = true;  // reading needs no durability
  return options;
}

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
  if (is_private && (from == From::kCopy || !is_live(directory))) read_copy(directory);
  RedisStoreOptions options = reader_options(record_);
  if (is_private && !server_) options.timeout = kLivePatience;
  try {
    store_ = std::make_unique<RedisStore>(options);
  } catch (const Error&) {
    // A private store goes with its driver, which may have ended just now.
    if (!is_private || server_ || is_live(directory)) throw;
    read_copy(directory);
    store_ = std::make_unique<RedisStore>(reader_options(record_));
  }
}

void JournalReader::read_copy(const fs::path& directory) {
  runtime_ = std::make_unique<RuntimeDirectory>();
  RedisServerOptions options;
  options.runtime_directory = runtime_->path();
  options.data_directory = runtime_->path() / "store";
  copy_journal(directory / "store", options.data_directory);
  server_ = std::make_unique<RedisServer>(options);
  record_.store = server_->address();
}

}  // namespace tune
