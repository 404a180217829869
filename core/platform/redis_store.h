// RedisStore: the journal as a Redis stream, with named values beside it, all keys under one
// prefix. Not for several threads.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/store.h"
#include "core/store_address.h"

struct redisContext;

namespace tune {

struct RedisStoreOptions {
  std::string address;  // see core/store_address.h
  std::string prefix;   // "tune:<experiment>"
  // How long a lost or stopped server is waited for before the store counts as lost.
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  // Told that a server is waited for (once a call, after a tenth of the timeout), and that it may
  // lose its last second.
  std::function<void(const std::string& text)> notice = {};
  bool unsafe = false;  // accept a server that may lose or evict entries
};

class RedisStore : public Store {
 public:
  // Connects. Throws Error (kBadInput) for a bad address, one where nobody answers or something
  // else does, a wrong password, an old or unsafe server.
  explicit RedisStore(RedisStoreOptions options);
  ~RedisStore() override;

  void append(EntryId id, std::string_view payload) override;
  std::vector<Entry> read(EntryId after, std::size_t limit) override;
  std::optional<EntryId> last() override;
  void put(std::string_view name, std::string_view value) override;
  std::optional<std::string> get(std::string_view name) override;
  void remove(std::string_view name) override;
  void put_and_trim(std::string_view name, std::string_view value, EntryId through) override;
  void remove_all() override;

 private:
  class Reply;
  using Arguments = std::vector<std::string_view>;

  using Clock = std::chrono::steady_clock;

  Reply command(const Arguments& arguments);  // connects again until the timeout
  std::optional<Reply> exchange(const Arguments& arguments, std::string& cause);
  bool is_connected(Clock::time_point end, std::string& cause);
  bool try_connect(Clock::time_point end, std::string& cause);
  bool introduce(const Arguments& words, std::string& cause);
  void set_limit(std::chrono::milliseconds limit);
  [[noreturn]] void give_up(const std::string& cause) const;
  void refuse_unfit();
  void refuse_lossy();
  bool holds(EntryId id, std::string_view payload);
  std::string key(std::string_view name) const;

  struct Close {
    void operator()(redisContext* context) const;
  };
  RedisStoreOptions options_;
  StoreAddress address_;
  std::unique_ptr<redisContext, Close> context_;
  bool was_there_ = false;             // the server has answered once
  bool looks_ = false;                 // in reconnected(),
  bool must_look_again_ = false;       // during which the connection was lost
  std::chrono::milliseconds limit_{};  // of one call on the connection
};

}  // namespace tune
