#include "core/platform/redis_store.h"

#include <hiredis/hiredis.h>

#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "core/wire.h"

namespace tune {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kFirstRetry{5};
constexpr milliseconds kLastRetry{500};
constexpr std::size_t kMaxPayloadBytes = 4 * kMaxFrameBytes;

timeval to_timeval(milliseconds time) {
  return {time.count() / 1000, (time.count() % 1000) * 1000};
}

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

void RedisStore::Close::operator()(redisContext* context) const { redisFree(context); }

// ---- Connection -----------------------------------------------------------------------------------

RedisStore::RedisStore(RedisStoreOptions options)
    : options_(std::move(options)), address_(parse_store_address(options_.address)) {
  command({"PING"});
  if (!options_.unsafe) refuse_unsafe();
}

RedisStore::~RedisStore() = default;

void RedisStore::fail(const std::string& cause) const {
  throw Error(ErrorCode::kStore,
              fmt::format("the store at {} is lost: {} (tried for {} s)", shown(address_), cause,
                          std::chrono::duration<double>(options_.timeout).count()));
}

bool RedisStore::try_connect(std::string& cause) {
  const timeval limit = to_timeval(options_.timeout);
  context_.reset(address_.host.empty()
                     ? redisConnectUnixWithTimeout(address_.path.c_str(), limit)
                     : redisConnectWithTimeout(address_.host.c_str(), address_.port, limit));
  if (!context_ || context_->err != 0) {
    cause = context_ ? context_->errstr : "out of memory";
    context_.reset();
    return false;
  }
  redisSetTimeout(context_.get(), limit);
  authenticate();
  return context_ != nullptr;
}

void RedisStore::authenticate() {
  const auto send = [this](const Arguments& words) {
    std::vector<const char*> argv;
    std::vector<std::size_t> lengths;
    for (std::string_view word : words) argv.push_back(word.data()), lengths.push_back(word.size());
    auto* raw = static_cast<redisReply*>(redisCommandArgv(
        context_.get(), static_cast<int>(argv.size()), argv.data(), lengths.data()));
    if (raw == nullptr) {
      context_.reset();
      return;
    }
    const Reply reply(raw);
    if (!reply.is_error()) return;
    // A server that is still reading its file is waited for like one that is not there yet.
    if (reply.text().starts_with("LOADING")) {
      context_.reset();
      return;
    }
    throw Error(ErrorCode::kBadInput,
                fmt::format("connecting to the store: {}: {}: check the password and the database "
                            "in store:",
                            words[0], reply.text()));
  };
  if (!address_.password.empty()) {
    if (address_.user.empty()) {
      send({"AUTH", address_.password});
    } else {
      send({"AUTH", address_.user, address_.password});
    }
  }
  if (context_ && address_.database != 0) send({"SELECT", std::to_string(address_.database)});
}

RedisStore::Reply RedisStore::command(const Arguments& arguments) {
  std::vector<const char*> argv;
  std::vector<std::size_t> lengths;
  for (std::string_view word : arguments) argv.push_back(word.data()), lengths.push_back(word.size());
  const auto end = Clock::now() + options_.timeout;
  milliseconds pause = kFirstRetry;
  std::string cause = "no connection";
  while (true) {
    if (context_ || try_connect(cause)) {
      auto* raw = static_cast<redisReply*>(redisCommandArgv(
          context_.get(), static_cast<int>(argv.size()), argv.data(), lengths.data()));
      if (raw != nullptr) {
        Reply reply(raw);
        if (reply.text().starts_with("NOAUTH")) {
          throw Error(ErrorCode::kBadInput,
                      "connecting to the store: it wants a password: write it as "
                      "redis://:password@host:port/db");
        }
        if (!reply.text().starts_with("LOADING")) return reply;
      } else {
        cause = context_->err == REDIS_ERR_IO ? std::strerror(errno) : context_->errstr;
      }
      context_.reset();
    }
    if (Clock::now() + pause >= end) fail(cause);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLastRetry);
  }
}

void RedisStore::refuse_unsafe() {
  const auto setting = [this](std::string_view name) -> std::string {
    const Reply reply = command({"CONFIG", "GET", name});
    return reply.size() == 2 ? std::string(reply[1].text()) : std::string();  // may be forbidden
  };
  const std::string append_only = setting("appendonly");
  const std::string policy = setting("maxmemory-policy");
  if (append_only == "no") {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the store {} keeps no append-only file, so a restart of it loses the "
                            "experiment: set `appendonly yes` there, or store_unsafe: true here",
                            shown(address_)));
  }
  if (!policy.empty() && policy != "noeviction" && !policy.starts_with("volatile-")) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("the store {} may evict entries (maxmemory-policy {}): set it to "
                            "noeviction there, or store_unsafe: true here",
                            shown(address_), policy));
  }
}

std::string RedisStore::key(std::string_view name) const {
  return fmt::format("{}:{}", options_.prefix, name);
}

// ---- Journal --------------------------------------------------------------------------------------

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
  if (payload.size() > kMaxPayloadBytes) {
    throw Error(ErrorCode::kStore, fmt::format("appending to the journal: {} bytes in one entry, at "
                                               "most {} are allowed",
                                               payload.size(), kMaxPayloadBytes));
  }
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
      throw Error(ErrorCode::kStore, fmt::format("reading the journal: {} holds something else",
                                                 key("journal")));
    }
    entries.push_back(std::move(*entry));
  }
  return entries;
}

std::optional<EntryId> RedisStore::last() {
  const Reply reply = command({"XREVRANGE", key("journal"), "+", "-", "COUNT", "1"});
  if (!reply.is_list()) {
    throw Error(ErrorCode::kStore, fmt::format("reading the journal: {}", reply.text()));
  }
  const auto entry = reply.size() == 1 ? parse_entry(reply[0]) : std::nullopt;
  return entry ? std::optional(entry->id) : std::nullopt;
}

// ---- Named values ---------------------------------------------------------------------------------

void RedisStore::put(std::string_view name, std::string_view value) {
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

void RedisStore::put_and_trim(std::string_view name, std::string_view value, EntryId through) {
  // Both or neither, and idempotent: it may be sent twice after a lost connection.
  constexpr std::string_view kScript =
      "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('XTRIM', KEYS[2], 'MINID', ARGV[2])";
  const EntryId first_kept{through.epoch, through.sequence + 1};
  const Reply reply = command({"EVAL", kScript, "2", key(name), key("journal"), value,
                               to_string(first_kept)});
  if (reply.is_error()) {
    throw Error(ErrorCode::kStore, fmt::format("storing {}: {}", name, reply.text()));
  }
}

}  // namespace tune
