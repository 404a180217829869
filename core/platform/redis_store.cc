#include "core/platform/redis_store.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "core/clock.h"

namespace tune {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstRetry{5};
constexpr milliseconds kLastRetry{500};
// The limit for making a connection, and for each answer while the server's data are looked at;
// also in a call that waits for less.
constexpr milliseconds kConnectLimit{1000};
constexpr std::chrono::seconds kSilentConnection{10};  // without movement before it is given up
// Errors of a server that cannot write now: its disk is full, say, or another is to replace it.
constexpr std::string_view kPassing[] = {"MISCONF ", "READONLY ", "NOREPLICAS ", "MASTERDOWN ",
                                         "BUSY "};

timeval to_timeval(milliseconds time) {
  return {time.count() / 1000, (time.count() % 1000) * 1000};
}

// A server that is gone must be an error of the call, not a signal to the whole program.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &former_);
  }
  ~NoBrokenPipe() {
    const timespec now{0, 0};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &former_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t former_;
  bool was_pending_ = false;
};

}  // namespace

// Owns one reply; every accessor checks its type.
class RedisStore::Reply {
 public:
  explicit Reply(redisReply* reply) : reply_(reply, &freeReplyObject) {}
  Reply(const Reply& parent, std::size_t index)
      : reply_(parent.reply_->element[index], [](void*) {}) {}

  bool is_error() const { return reply_->type == REDIS_REPLY_ERROR; }
  bool is_nil() const { return reply_->type == REDIS_REPLY_NIL; }
  bool is_list() const { return reply_->type == REDIS_REPLY_ARRAY; }
  bool has_text() const {
    return reply_->type == REDIS_REPLY_STRING || reply_->type == REDIS_REPLY_STATUS || is_error();
  }
  std::string_view text() const {
    return has_text() ? std::string_view(reply_->str, reply_->len) : std::string_view();
  }
  std::size_t size() const { return is_list() ? reply_->elements : 0; }
  Reply operator[](std::size_t index) const { return Reply(*this, index); }

 private:
  std::unique_ptr<redisReply, void (*)(void*)> reply_;
};

void RedisStore::Close::operator()(redisContext* context) const {
  redisFree(context);
}

// ---- Connection ---------------------------------------------------------------------------------

RedisStore::RedisStore(RedisStoreOptions options)
    : options_(std::move(options)), address_(parse_store_address(options_.address)) {
  command({"PING"});
  was_there_ = true;
  refuse_unfit();
}

RedisStore::~RedisStore() = default;

RedisStore::Reply RedisStore::command(const Arguments& arguments) {
  const NoBrokenPipe guard;
  if (!moment_) return wait_for_answer(arguments);
  if (looks_) return try_once(arguments, Clock::now() + kConnectLimit);
  // A long call is made only on a server that answers.
  if (is_silent_) try_once({"PING"}, Clock::now() + *moment_);
  return try_once(arguments, Clock::time_point::max());
}

RedisStore::Reply RedisStore::wait_for_answer(const Arguments& arguments) {
  const Clock::time_point begun = Clock::now();
  // There is no end while something moves.
  const auto end = [&] {
    return context_ ? std::max(begun, moved_at_) + options_.timeout : begun + options_.timeout;
  };
  const Clock::time_point tell_at = begun + options_.timeout / 10;
  bool told = !options_.notice;
  milliseconds pause = kFirstRetry;
  std::string cause;
  while (true) {
    if (is_connected(told ? end() : tell_at, cause)) {
      std::optional<Reply> reply = exchange(arguments, told ? end() : tell_at, cause);
      if (reply) return std::move(*reply);
    }
    const milliseconds rest = context_ ? milliseconds(0) : pause;
    if (Clock::now() + rest >= end()) give_up(cause);
    if (!told && Clock::now() >= tell_at) {
      told = true;
      options_.notice(fmt::format("the store at {} does not answer ({}): waiting up to {} s for it",
                                  shown(address_), cause, seconds(options_.timeout)));
    }
    if (context_) continue;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLastRetry);
  }
}

// The caller makes the next try. A try without an end is over when nothing moves for long.
RedisStore::Reply RedisStore::try_once(const Arguments& arguments, Clock::time_point end) {
  const NoBrokenPipe guard;
  std::string cause;
  if (is_connected(std::min(end, Clock::now() + kConnectLimit), cause)) {
    if (std::optional<Reply> reply = exchange(arguments, end, cause)) {
      is_silent_ = false;
      return std::move(*reply);
    }
  }
  is_silent_ = true;
  give_up(cause);
}

// A connection that is made again is looked at first. When it is lost again meanwhile, the look
// begins anew with the next one: no call is sent before a complete look.
bool RedisStore::is_connected(Clock::time_point end, std::string& cause) {
  if (!context_) {
    if (!try_connect(end, cause)) return false;
    needs_look_ = was_there_;
    must_look_again_ = true;
  }
  if (!needs_look_ || looks_) return true;
  looks_ = true;
  try {
    do {
      must_look_again_ = false;
      reconnected();
    } while (must_look_again_);
  } catch (const StoreSilentError&) {
    looks_ = false;  // and the look is still to be done
    throw;
  } catch (...) {
    looks_ = needs_look_ = false;
    throw;
  }
  looks_ = needs_look_ = false;
  if (!context_) cause = "it was lost again";
  return context_ != nullptr;
}

void RedisStore::give_up(const std::string& cause) const {
  const std::string tried =
      moment_ ? cause : fmt::format("{} (tried for {} s)", cause, seconds(options_.timeout));
  if (was_there_) {
    throw StoreSilentError(fmt::format("the store at {} is lost: {}", shown(address_), tried),
                           fmt::format("the store at {}: {}", shown(address_), cause));
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("connecting to the store at {}: {}: start the server, correct store:, or "
                          "leave store out for a private one",
                          shown(address_), tried));
}

void RedisStore::stop_waiting(milliseconds moment) {
  moment_ = moment;
}

int RedisStore::descriptor() const {
  return context_ ? context_->fd : -1;
}

// Sends, unless an earlier call did, and waits for the answer. Nothing: there is no answer yet, or
// the connection is lost. A call that only waits too long leaves the connection as it is: a large
// answer may take longer to arrive than any one call waits, and would never arrive if it was asked
// for anew each time. Only a connection on which nothing has moved for long is given up, as its
// other end may be gone without a word.
std::optional<RedisStore::Reply> RedisStore::exchange(const Arguments& arguments,
                                                      Clock::time_point end, std::string& cause) {
  cause = "no answer";
  // The answer to another call must not be taken for this one's.
  if (!unanswered_.empty() && !std::ranges::equal(unanswered_, arguments)) {
    abandon_connection();
    return std::nullopt;
  }
  if (unanswered_.empty()) send(arguments);
  while (true) {
    int is_written = 0;
    void* raw = nullptr;
    if (redisBufferWrite(context_.get(), &is_written) != REDIS_OK ||
        redisGetReplyFromReader(context_.get(), &raw) != REDIS_OK) {
      lose_connection(cause);
      return std::nullopt;
    }
    if (raw != nullptr) {
      unanswered_.clear();
      return judged(Reply(static_cast<redisReply*>(raw)), cause);
    }
    const int moves = wait_on_connection(is_written != 0 ? POLLIN : POLLIN | POLLOUT, end);
    if ((moves & ~POLLOUT) != 0) {
      if (redisBufferRead(context_.get()) == REDIS_OK) continue;
      lose_connection(cause);
      return std::nullopt;
    }
    if (moves != 0 && Clock::now() < end) continue;
    if (Clock::now() - moved_at_ >= kSilentConnection) {
      abandon_connection();
    } else if (unanswered_.empty()) {
      unanswered_.assign(arguments.begin(), arguments.end());
    }
    return std::nullopt;
  }
}

// Into the connection's buffer.
void RedisStore::send(const Arguments& arguments) {
  std::vector<const char*> argv;
  std::vector<std::size_t> lengths;
  for (std::string_view word : arguments)
    argv.push_back(word.data()), lengths.push_back(word.size());
  redisAppendCommandArgv(context_.get(), static_cast<int>(argv.size()), argv.data(),
                         lengths.data());
  moved_at_ = Clock::now();
}

// The operations possible now, as poll tells them; nothing: none before the end.
int RedisStore::wait_on_connection(int for_what, Clock::time_point end) {
  const Clock::time_point until = std::min(end, moved_at_ + kSilentConnection);
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  pollfd watched{context_->fd, static_cast<short>(for_what), 0};
  if (poll(&watched, 1, static_cast<int>(std::max<std::int64_t>(0, left.count()))) <= 0) return 0;
  moved_at_ = Clock::now();
  return watched.revents;
}

// Without a reset the kernel would go on to deliver what was written on it, perhaps after what is
// written on the next one: an older snapshot over a newer.
void RedisStore::abandon_connection() {
  constexpr linger kReset{1, 0};
  setsockopt(context_->fd, SOL_SOCKET, SO_LINGER, &kReset, sizeof kReset);
  context_.reset();
  unanswered_.clear();
}

void RedisStore::lose_connection(std::string& cause) {
  cause = context_->errstr;
  const bool is_another = context_->err == REDIS_ERR_PROTOCOL;
  context_.reset();
  unanswered_.clear();
  if (!is_another) return;
  throw Error(was_there_ ? ErrorCode::kStore : ErrorCode::kBadInput,
              fmt::format("{} is not a Redis server: {}: check store:", shown(address_), cause));
}

// A server that cannot do it now is waited for like a server that is not there yet.
std::optional<RedisStore::Reply> RedisStore::judged(Reply reply, std::string& cause) {
  if (!reply.is_error()) return reply;
  if (reply.text().starts_with("NOAUTH")) {
    throw Error(ErrorCode::kBadInput, fmt::format("the store at {} wants a password: write it as "
                                                  "redis://:password@host:port/db",
                                                  shown(address_)));
  }
  if (reply.text().starts_with("LOADING")) {
    cause = "it is still reading its file";
  } else if (std::ranges::any_of(
                 kPassing, [&](std::string_view kind) { return reply.text().starts_with(kind); })) {
    cause = reply.text();
  } else {
    return reply;
  }
  context_.reset();
  return std::nullopt;
}

bool RedisStore::try_connect(Clock::time_point end, std::string& cause) {
  const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
  const timeval time = to_timeval(std::max(left, kConnectLimit));
  unanswered_.clear();
  context_.reset(address_.host.empty()
                     ? redisConnectUnixWithTimeout(address_.path.c_str(), time)
                     : redisConnectWithTimeout(address_.host.c_str(), address_.port, time));
  if (!context_ || context_->err != 0) {
    cause = context_ ? context_->errstr : "out of memory";
    context_.reset();
    return false;
  }
  // From here on nothing blocks in it.
  fcntl(context_->fd, F_SETFL, fcntl(context_->fd, F_GETFL) | O_NONBLOCK);
  context_->flags &= ~REDIS_BLOCK;
  if (!address_.password.empty()) {
    Arguments words = {"AUTH", address_.user, address_.password};
    if (address_.user.empty()) words.erase(words.begin() + 1);
    if (!introduce(words, end, cause)) return false;
  }
  if (address_.database == 0) return true;
  return introduce({"SELECT", std::to_string(address_.database)}, end, cause);
}

// Sends a command that must succeed before the connection is of use.
bool RedisStore::introduce(const Arguments& words, Clock::time_point end, std::string& cause) {
  const std::optional<Reply> reply =
      exchange(words, std::max(end, Clock::now() + kConnectLimit), cause);
  if (!reply) {
    if (context_) abandon_connection();
    return false;
  }
  if (!reply->is_error()) return true;
  throw Error(ErrorCode::kBadInput,
              fmt::format("connecting to the store at {}: {}: {}: check the password and the "
                          "database in store:",
                          shown(address_), words[0], reply->text()));
}

namespace {

// The value of one line "name:value" of what INFO says; empty when it is not there.
std::string_view info_field(std::string_view info, std::string_view name) {
  for (std::size_t begin = info.find(name); begin != std::string_view::npos;
       begin = info.find(name, begin + 1)) {
    const std::size_t colon = begin + name.size();
    if ((begin > 0 && info[begin - 1] != '\n') || info.substr(colon, 1) != ":") continue;
    return info.substr(colon + 1, info.find_first_of("\r\n", colon) - colon - 1);
  }
  return {};
}

// Reading after an id and trimming up to an id exist since 6.2.
bool is_too_old(std::string_view version) {
  int major = 0, minor = 0;
  const char* end = version.data() + version.size();
  const auto read = std::from_chars(version.data(), end, major);
  if (read.ec != std::errc()) return false;
  if (read.ptr != end) std::from_chars(read.ptr + 1, end, minor);
  return major < 6 || (major == 6 && minor < 2);
}

}  // namespace

void RedisStore::refuse_unfit() {
  const Reply reply = command({"INFO"});
  if (reply.is_error()) return;  // not allowed to ask
  const std::string_view version = info_field(reply.text(), "redis_version");
  const std::string_view policy = info_field(reply.text(), "maxmemory_policy");
  if (is_too_old(version)) {
    throw Error(ErrorCode::kBadInput, fmt::format("the store at {} is Redis {}: use 6.2 or newer",
                                                  shown(address_), version));
  }
  if (options_.unsafe) return;
  if (info_field(reply.text(), "aof_enabled") == "0") {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("the store at {} keeps no append-only file, so a restart of it loses "
                    "the experiment: set `appendonly yes` there, or store_unsafe: true here",
                    shown(address_)));
  }
  // The volatile policies evict only keys with a time to live, which no entry has.
  if (!policy.empty() && policy != "noeviction" && !policy.starts_with("volatile-")) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the store at {} may evict entries (maxmemory-policy {}): set it to "
                            "noeviction there, or store_unsafe: true here",
                            shown(address_), policy));
  }
  refuse_lossy();
}

// Acknowledged entries must outlive the server, or nearly so.
void RedisStore::refuse_lossy() {
  const Reply reply = command({"CONFIG", "GET", "appendfsync"});
  if (reply.size() != 2) return;  // not allowed to ask
  if (reply[1].text() == "no") {
    throw Error(
        ErrorCode::kBadInput,
        fmt::format("the store at {} leaves it to the system when its file gets to the disk "
                    "(appendfsync no), so a crash there loses much of the experiment: set "
                    "`appendfsync always` or `everysec` there, or store_unsafe: true here",
                    shown(address_)));
  }
  if (reply[1].text() != "everysec" || !options_.notice) return;
  options_.notice(
      fmt::format("the store at {} writes to its disk once a second (appendfsync "
                  "everysec): a crash of its machine loses the last second; `appendfsync "
                  "always` loses nothing",
                  shown(address_)));
}

std::string RedisStore::key(std::string_view name) const {
  return fmt::format("{}:{}", options_.prefix, name);
}

// ---- Journal ------------------------------------------------------------------------------------

namespace {

// One stream entry: [id, ["p", payload]].
template <class Reply>
std::optional<Entry> parse_entry(const Reply& reply) {
  if (reply.size() != 2 || reply[1].size() != 2) return std::nullopt;
  const std::optional<EntryId> id = parse_entry_id(reply[0].text());
  if (!id) return std::nullopt;
  return Entry{*id, std::string(reply[1][1].text())};
}

}  // namespace

void RedisStore::append(EntryId id, std::string_view payload) {
  refuse_too_large(payload.size(), "appending to the journal");
  const std::string stream = key("journal");
  const std::string id_text = to_string(id);
  const Arguments words = {"XADD", stream, id_text, "p", payload};
  const Reply reply = moment_ ? try_once(words, Clock::now() + *moment_) : command(words);
  if (!reply.is_error()) return;
  const std::string refused(reply.text());
  if (refused.find("equal or smaller") == std::string::npos) {
    throw Error(ErrorCode::kStore, fmt::format("appending entry {}: {}", id_text, refused));
  }
  if (holds(id, payload)) return;  // sent twice: the first answer was lost
  throw SupersededError(fmt::format(
      "appending entry {}: the journal has gone on without this driver: another one has taken over",
      id_text));
}

bool RedisStore::holds(EntryId id, std::string_view payload) {
  const std::string id_text = to_string(id);
  const Reply reply = command({"XRANGE", key("journal"), id_text, id_text});
  const auto entry = reply.size() == 1 ? parse_entry(reply[0]) : std::nullopt;
  return entry && entry->payload == payload;
}

std::vector<Entry> RedisStore::read(EntryId after, std::size_t limit) {
  const std::string from = fmt::format("({}", to_string(after));
  const Reply reply =
      command({"XRANGE", key("journal"), from, "+", "COUNT", std::to_string(limit)});
  if (!reply.is_list()) {
    throw Error(ErrorCode::kStore, fmt::format("reading the journal: {}", reply.text()));
  }
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < reply.size(); ++i) {
    std::optional<Entry> entry = parse_entry(reply[i]);
    if (!entry) {
      throw Error(ErrorCode::kStore,
                  fmt::format("reading the journal: {} holds something else", key("journal")));
    }
    entries.push_back(std::move(*entry));
  }
  return entries;
}

std::optional<EntryId> RedisStore::last() {
  const Reply reply = command({"XINFO", "STREAM", key("journal")});
  if (reply.is_error() && reply.text() == "ERR no such key") return std::nullopt;
  for (std::size_t i = 0; i + 1 < reply.size(); i += 2) {
    if (reply[i].text() == "last-generated-id") return parse_entry_id(reply[i + 1].text());
  }
  throw Error(ErrorCode::kStore, fmt::format("reading the journal: {}", reply.text()));
}

// ---- Named values -------------------------------------------------------------------------------

void RedisStore::put(std::string_view name, std::string_view value) {
  refuse_too_large(value.size(), fmt::format("storing {}", name));
  const Reply reply = command({"SET", key(name), value});
  if (reply.is_error()) {
    throw Error(ErrorCode::kStore, fmt::format("storing {}: {}", name, reply.text()));
  }
}

std::optional<std::string> RedisStore::get(std::string_view name) {
  const Reply reply = command({"GET", key(name)});
  if (reply.is_nil()) return std::nullopt;
  if (reply.is_error()) {
    throw Error(ErrorCode::kStore, fmt::format("reading {}: {}", name, reply.text()));
  }
  return std::string(reply.text());
}

void RedisStore::remove(std::string_view name) {
  const Reply reply = command({"DEL", key(name)});
  if (reply.is_error()) {
    throw Error(ErrorCode::kStore, fmt::format("removing {}: {}", name, reply.text()));
  }
}

void RedisStore::put_and_trim(std::string_view name, std::string_view value, EntryId through) {
  refuse_too_large(value.size(), fmt::format("storing {}", name));
  // Both or neither, and idempotent: the script may be sent twice after a lost connection.
  constexpr std::string_view kScript = R"(
local info = redis.pcall('XINFO', 'STREAM', KEYS[2])
for i = 1, info.err and 0 or #info, 2 do
  if info[i] == 'last-generated-id' then
    local epoch = tonumber(string.match(info[i + 1], '^%d+'))
    if epoch > tonumber(ARGV[3]) then return redis.error_reply('SUPERSEDED') end
  end
end
redis.call('SET', KEYS[1], ARGV[1])
return redis.call('XTRIM', KEYS[2], 'MINID', ARGV[2]))";
  const EntryId first_kept{through.epoch, through.sequence + 1};
  const Reply reply = command({"EVAL", kScript, "2", key(name), key("journal"), value,
                               to_string(first_kept), std::to_string(through.epoch)});
  if (reply.is_error() && reply.text().find("SUPERSEDED") != std::string_view::npos) {
    throw SupersededError(fmt::format("storing {} as of entry {}: another driver has taken over",
                                      name, to_string(through)));
  }
  if (reply.is_error()) {
    throw Error(ErrorCode::kStore, fmt::format("storing {}: {}", name, reply.text()));
  }
}

// ---- All of it ----------------------------------------------------------------------------------

namespace {

// A pattern that only this text matches.
std::string without_pattern(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    if (std::string_view("*?[]\\").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

}  // namespace

void RedisStore::remove_all() {
  const std::string pattern = without_pattern(key("")) + "*";
  std::vector<std::string> keys;
  std::string cursor = "0";
  do {
    const Reply reply = command({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"});
    if (reply.size() != 2) {
      throw Error(ErrorCode::kStore, fmt::format("looking for keys {}: {}", pattern, reply.text()));
    }
    for (std::size_t i = 0; i < reply[1].size(); ++i) keys.emplace_back(reply[1][i].text());
    cursor = reply[0].text();
  } while (cursor != "0");
  if (keys.empty()) return;
  Arguments words = {"DEL"};
  words.insert(words.end(), keys.begin(), keys.end());
  const Reply reply = command(words);
  if (reply.is_error()) {
    throw Error(ErrorCode::kStore, fmt::format("removing {}: {}", pattern, reply.text()));
  }
}

}  // namespace tune
