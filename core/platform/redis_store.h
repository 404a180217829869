// RedisStore: the journal as a Redis stream, with named values beside it, all keys under one
// prefix. Not for several threads.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/store.h"
#include "core/store_address.h"

struct redisContext;

namespace tune {

struct RedisStoreOptions {
  std::string address;  // see core/store_address.h
  std::string prefix;   // "tune:<experiment>"
  // The time to wait for a lost or stopped server before the store counts as lost.
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  // Called when the store waits for a server (once a call, after a tenth of the timeout), and when
  // the server may lose its last second.
  std::function<void(const std::string& text)> notice = {};
  bool unsafe = false;  // accept a server that may lose or evict entries
};

class RedisStore : public Store {
 public:
  // Connects. Throws Error (kBadInput) for a bad address, an address where nothing or something
  // else answers, a wrong password, an old or unsafe server.
  explicit RedisStore(RedisStoreOptions options);
  ~RedisStore() override;

  // From now on each call is one try, and throws StoreSilentError when it fails: the caller goes on
  // with other work and makes the call again. An append waits for `moment` only; the repeated call
  // continues where it was. Other calls are rare, and wait until nothing has moved for 10 s; after
  // a silence the server is first asked, for a moment, whether it answers.
  void stop_waiting(std::chrono::milliseconds moment);
  // Readable when the answer that a call did not wait for may be there; -1: there is no connection.
  int descriptor() const;

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

  Reply command(const Arguments& arguments);
  Reply wait_for_answer(const Arguments& arguments);  // connects again until the timeout
  Reply try_once(const Arguments& arguments, Clock::time_point end);
  std::optional<Reply> exchange(const Arguments& arguments, Clock::time_point end,
                                std::string& cause);
  void send(const Arguments& arguments);
  int wait_on_connection(int for_what, Clock::time_point end);
  void abandon_connection();
  void lose_connection(std::string& cause);
  std::optional<Reply> judged(Reply reply, std::string& cause);
  bool is_connected(Clock::time_point end, std::string& cause);
  bool try_connect(Clock::time_point end, std::string& cause);
  bool introduce(const Arguments& words, Clock::time_point end, std::string& cause);
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
  std::optional<std::chrono::milliseconds> moment_;  // see stop_waiting
  bool is_silent_ = false;                           // the last try failed
  bool was_there_ = false;                           // the server has answered once
  bool needs_look_ = false;       // no look was whole since this connection was made
  bool looks_ = false;            // in reconnected(),
  bool must_look_again_ = false;  // during which the connection was lost
  // The call that was sent on this connection and ended without its answer, and the time of the
  // last movement on it.
  std::vector<std::string> unanswered_;
  Clock::time_point moved_at_{};
};

}  // namespace tune
