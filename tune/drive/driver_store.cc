#include "tune/drive/driver_store.h"

#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "tune/drive/journal.h"

namespace tune {

namespace {

constexpr std::chrono::seconds kStart{10};      // for a call before the loop
constexpr std::chrono::milliseconds kTurn{50};  // for an append in it

}  // namespace

DriverStore::DriverStore(Options options) : options_(std::move(options)) {
  if (options_.address.empty()) server_ = std::make_unique<RedisServer>(options_.server);
  store_ = connected();
  if (!options_.is_new || !Journal::is_in(*store_)) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("beginning the experiment: there is a journal under {} in the store "
                          "already: it is another experiment's, choose another name or store",
                          options_.prefix));
}

std::unique_ptr<RedisStore> DriverStore::connected() const try {
  RedisStoreOptions options;
  options.address = address();
  options.prefix = options_.prefix;
  options.timeout = kStart;
  options.unsafe = options_.unsafe;
  options.notice = options_.notice;
  return std::make_unique<RedisStore>(options);
} catch (const Error& error) {
  const std::string how = server_ ? server_->await_end() : std::string();
  if (!how.empty()) throw Error(ErrorCode::kStore, fmt::format("starting the store: {}", how));
  if (options_.is_new) throw;
  throw Error(ErrorCode::kStore, error.what());  // the run can go on when the store is back
}

std::string DriverStore::address() const {
  return server_ ? server_->address() : options_.address;
}

void DriverStore::end_start() {
  store_->stop_waiting(kTurn);
}

void DriverStore::withdraw() {
  if (!server_) store_->remove_all();
}

}  // namespace tune
