#include "core/platform/redis_store.h"

#include <hiredis/hiredis.h>

#include <cerrno>
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

timeval to_timeval(milliseconds time) {
  return {time.count() / 1000, (time.count() % 1000) * 1000};
}

// A server that is gone must be an error of the call, not a signal for the whole program.
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

// Owns one reply; every way to look into it checks its type.
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

// ---- Connection
// -----------------------------------------------------------------------------------

RedisStore::RedisStore(RedisStoreOptions options)
    : options_(std::move(options)), address_(parse_store_address(options_.address)) {
  command({"PING"});
  was_there_ = true;
  refuse_unfit();
}

RedisStore::~RedisStore() = default;

RedisStore::Reply RedisStore::command(const Arguments& arguments) {
  const NoBrokenPipe guard;
  const Clock::time_point end = Clock::now() + options_.timeout;
  const Clock::time_point tell_at = end - options_.timeout / 10 * 9;
  bool told = !options_.notice;
  if (context_ && limit_ != options_.timeout) set_limit(options_.timeout);
  milliseconds pause = kFirstRetry;
  std::string cause;
  while (true) {
    if (is_connected(told ? end : tell_at, cause)) {
      std::optional<Reply> reply = exchange(arguments, cause);
      if (reply) return std::move(*reply);
    }
    if (Clock::now() + pause >= end) give_up(cause);
    if (!told && Clock::now() >= tell_at) {
      told = true;
      options_.notice(fmt::format("the store at {} does not answer ({}): waiting up to {} s for it",
                                  shown(address_), cause, seconds(options_.timeout)));
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLastRetry);
  }
}

// A connection that was lost and is there again is looked at first. When it is lost again
// meanwhile, the look begins anew with the next one: nothing is sent before a look that was whole.
bool RedisStore::is_connected(Clock::time_point end, std::string& cause) {
  if (context_) return true;
  if (!try_connect(end, cause)) return false;
  if (!was_there_) return true;
  if (looks_) {
    must_look_again_ = true;
    return true;
  }
  looks_ = true;
  try {
    do {
      must_look_again_ = false;
      reconnected();
    } while (must_look_again_);
  } catch (...) {
    looks_ = false;
    throw;
  }
  looks_ = false;
  if (!context_) cause = "it was lost again";
  return context_ != nullptr;
}

void RedisStore::give_up(const std::string& cause) const {
  const std::string tried = fmt::format("{} (tried for {} s)", cause, seconds(options_.timeout));
  if (was_there_) {
    throw Error(ErrorCode::kStore,
                fmt::format("the store at {} is lost: {}", shown(address_), tried));
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("connecting to the store at {}: {}: start the server, correct store:, or "
                          "leave store out for a private one",
                          shown(address_), tried));
}

// Sends and waits for the answer. Nothing: there is none, the connection is given up.
std::optional<RedisStore::Reply> RedisStore::exchange(const Arguments& arguments,
                                                      std::string& cause) {
  std::vector<const char*> argv;
  std::vector<std::size_t> lengths;
  for (std::string_view word : arguments)
    argv.push_back(word.data()), lengths.push_back(word.size());
  auto* raw = static_cast<redisReply*>(
      redisCommandArgv(context_.get(), static_cast<int>(argv.size()), argv.data(), lengths.data()));
  if (raw == nullptr) {
    const bool too_late = context_->err == REDIS_ERR_IO && errno == EAGAIN;
    cause = too_late ? "no answer" : context_->errstr;
    if (context_->err == REDIS_ERR_PROTOCOL) {
      throw Error(was_there_ ? ErrorCode::kStore : ErrorCode::kBadInput,
                  fmt::format("{} is no Redis server: {}: check store:", shown(address_), cause));
    }
    context_.reset();
    return std::nullopt;
  }
  Reply reply(raw);
  // A server that is still reading its file is waited for like one that is not there yet.
  if (reply.is_error() && reply.text().starts_with("LOADING")) {
    cause = "it is still reading its file";
    context_.reset();
    return std::nullopt;
  }
  if (reply.is_error() && reply.text().starts_with("NOAUTH")) {
    throw Error(ErrorCode::kBadInput, fmt::format("the store at {} wants a password: write it as "
                                                  "redis://:password@host:port/db",
                                                  shown(address_)));
  }
  return reply;
}

bool RedisStore::try_connect(Clock::time_point end, std::string& cause) {
  const auto left = [end] {
    return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(end - Clock::now()));
  };
  const timeval limit = to_timeval(left());
  context_.reset(address_.host.empty()
                     ? redisConnectUnixWithTimeout(address_.path.c_str(), limit)
                     : redisConnectWithTimeout(address_.host.c_str(), address_.port, limit));
  if (!context_ || context_->err != 0) {
    cause = context_ ? context_->errstr : "out of memory";
    context_.reset();
    return false;
  }
  set_limit(left());
  if (!address_.password.empty()) {
    Arguments words = {"AUTH", address_.user, address_.password};
    if (address_.user.empty()) words.erase(words.begin() + 1);
    if (!introduce(words, cause)) return false;
  }
  if (address_.database == 0) return true;
  set_limit(left());
  return introduce({"SELECT", std::to_string(address_.database)}, cause);
}

// A command that must succeed before the connection is of use.
bool RedisStore::introduce(const Arguments& words, std::string& cause) {
  const std::optional<Reply> reply = exchange(words, cause);
  if (!reply) return false;
  if (!reply->is_error()) return true;
  throw Error(ErrorCode::kBadInput,
              fmt::format("connecting to the store at {}: {}: {}: check the password and the "
                          "database in store:",
                          shown(address_), words[0], reply->text()));
}

void RedisStore::set_limit(milliseconds limit) {
  redisSetTimeout(context_.get(), to_timeval(limit));
  limit_ = limit;
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

// Entries are read after an id and trimmed up to one since 6.2.
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
  // What is volatile has a time to live, which no entry has.
  if (!policy.empty() && policy != "noeviction" && !policy.starts_with("volatile-")) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the store at {} may evict entries (maxmemory-policy {}): set it to "
                            "noeviction there, or store_unsafe: true here",
                            shown(address_), policy));
  }
  refuse_lossy();
}

// What was acknowledged must outlive the server, or nearly so.
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

// ---- Journal
// --------------------------------------------------------------------------------------

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
  const Reply reply = command({"XADD", stream, id_text, "p", payload});
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

// ---- Named values
// ---------------------------------------------------------------------------------

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
  // Both or neither, and idempotent: it may be sent twice after a lost connection.
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

// ---- All of it
// ------------------------------------------------------------------------------------

namespace {

// For a pattern that only this text matches.
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
