// Objects of a store as files of this machine.
#include "core/platform/object_cache.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/refusal.h"
#include "s3_stand.h"
#include "trainables/temporary_folder.h"

namespace tune {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::refusal;
using testing::S3Found;
using testing::S3Stand;
using testing::TemporaryFolder;

struct CachedStore {
  S3Stand stand;
  S3Found found{stand.environment()};
  TemporaryFolder folder;

  ObjectCacheOptions options() const { return {.folder = folder.path(), .patience = 20s}; }
  ObjectCache cache() const { return ObjectCache("s3://checkpoints", options()); }
  std::size_t reads() const {
    const auto all = stand.requests();
    return static_cast<std::size_t>(std::ranges::count_if(
        all, [](const std::string& one) { return one.starts_with("GET /checkpoints/data/"); }));
  }
};

std::string content_of(const FileDescriptor& file) {
  std::string text;
  char bytes[65536];
  for (ssize_t got = 0; (got = ::read(file.get(), bytes, sizeof bytes)) > 0;) {
    text.append(bytes, static_cast<std::size_t>(got));
  }
  return text;
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST_CASE("an object is brought once, whole, and again when its content is another") {
  CachedStore place;
  std::string large(20u << 20, 'x');
  for (std::size_t i = 0; i < large.size(); i += 4093) large[i] = static_cast<char>('a' + i % 26);
  place.stand.put("data/large & \xc3\xa4", large);
  place.stand.put("data/none", "");
  place.stand.put("other", "1");
  {
    ObjectCache cache("s3://checkpoints/data", place.options());  // of an address the bucket counts
    const auto objects = cache.list("data/");
    REQUIRE(objects.size() == 2);
    CHECK(objects[0].name == "data/large & \xc3\xa4");
    CHECK(objects[0].bytes == large.size());
    CHECK(content_of(cache.open(objects[0])) == large);
    CHECK(content_of(cache.open(objects[1])).empty());
    CHECK(place.reads() == 3);  // parts of 8 MiB
    CHECK(content_of(cache.open(objects[0])) == large);
    CHECK(place.reads() == 3);
  }
  ObjectCache later = place.cache();
  CHECK(content_of(later.open(later.find("data/large & \xc3\xa4"))) == large);
  CHECK(place.reads() == 3);
  place.stand.put("data/large & \xc3\xa4", "another");
  CHECK(content_of(later.open(later.find("data/large & \xc3\xa4"))) == "another");
  CHECK(place.reads() == 4);
}

TEST_CASE("processes and threads that want an object wait for the one that brings it") {
  CachedStore place;
  place.stand.put("data/one", std::string(100'000, '1'));
  ObjectCache cache = place.cache();
  const S3Object object = cache.find("data/one");
  place.stand.answer_by([](const S3Stand::Asked& asked) -> std::optional<S3Stand::Answer> {
    if (!asked.key().empty()) std::this_thread::sleep_for(200ms);
    return std::nullopt;
  });
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(content_of(cache.open(object)).size() == 100'000 ? 0 : 1);
    children.push_back(child);
  }
  std::vector<std::thread> threads;
  std::atomic<int> whole = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] { whole += content_of(cache.open(object)).size() == 100'000; });
  }
  for (std::thread& one : threads) one.join();
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  CHECK(whole == 3);
  CHECK(place.reads() == 1);
}

TEST_CASE("a store that is away for a moment is asked again, and for no longer than is said") {
  CachedStore place;
  place.stand.put("data/one", "1");
  int asked = 0;
  place.stand.answer_by([&](const S3Stand::Asked&) -> std::optional<S3Stand::Answer> {
    if (++asked % 3 != 0) return S3Stand::error(503, "SlowDown");
    return std::nullopt;
  });
  ObjectCache cache = place.cache();
  CHECK(content_of(cache.open(cache.find("data/one"))) == "1");
  place.stand.refuse(503, "SlowDown");
  ObjectCache hasty("s3://checkpoints", {.folder = place.folder.path(), .patience = 300ms});
  const std::string said = refusal([&] { hasty.find("data/one"); }, ErrorCode::kIo);
  CHECK_HAS(said, "looking for s3://checkpoints/data/one: the store was away for 0.3 s");
  CHECK_HAS(said, "SlowDown");
}

TEST_CASE("what cannot be had is refused, and leaves no part of a file") {
  CachedStore place;
  place.stand.put("data/one", std::string(9u << 20, '1'));
  ObjectCache cache = place.cache();
  CHECK_HAS(refusal([&] { cache.find("data/on"); }, ErrorCode::kIo),
            "reading s3://checkpoints/data/on: it is not there");
  const S3Object object = cache.find("data/one");
  place.stand.put("data/one", std::string(9u << 20, '2'));
  CHECK_HAS(refusal([&] { cache.open(object); }, ErrorCode::kIo),
            "data/one at http://127.0.0.1");
  CHECK_HAS(refusal([&] { cache.open(object); }, ErrorCode::kIo),
            "it has been replaced since it was listed");
  // Away after the first part.
  const S3Object newer = cache.find("data/one");
  int parts = 0;
  place.stand.answer_by([&](const S3Stand::Asked& asked) -> std::optional<S3Stand::Answer> {
    if (asked.key().empty() || ++parts < 2) return std::nullopt;
    return S3Stand::error(403, "AccessDenied");
  });
  CHECK_HAS(refusal([&] { cache.open(newer); }, ErrorCode::kIo), "AccessDenied");
  CHECK(files_below(place.folder.path() / "objects").empty());
  CHECK_HAS(refusal([] { ObjectCache("s3:/x"); }), "s3:/x");
}

TEST_CASE("a full file system costs what was not used for longest; one that stays full is named") {
  CachedStore place;
  for (const char* name : {"old", "new", "next"}) {
    place.stand.put(std::string("data/") + name, std::string(1u << 20, name[0]));
  }
  ObjectCache cache = place.cache();
  const S3Object old = cache.find("data/old"), recent = cache.find("data/new");
  content_of(cache.open(recent));
  const FileDescriptor open_old = cache.open(old);
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ::futimens(open_old.get(), long_ago);
  CHECK(files_below(place.folder.path() / "objects").size() == 2);
  for (const char* name : {"1.part-7-1", "2.part-7-2"}) {
    std::ofstream(place.folder.path() / "objects" / name) << "half of it";
  }
  fs::last_write_time(place.folder.path() / "objects/2.part-7-2",
                      fs::file_time_type::clock::now() - 2h);

  ObjectCacheOptions greedy = place.options();
  greedy.reserve_bytes = ~std::uint64_t{0} / 2;  // 5 % then: as a file system that is full has less
  ObjectCache other("s3://checkpoints", greedy);
  const S3Object next = other.find("data/next");
  S3Object huge = next;
  huge.bytes = std::uint64_t{1} << 60;
  CHECK_HAS(refusal([&] { other.open(huge); }, ErrorCode::kIo), "set TUNE_DATA_CACHE");
  // All that could go went, also what a process left that ended: not what another brings just now.
  CHECK(files_below(place.folder.path() / "objects") == std::vector<std::string>{"1.part-7-1"});
  CHECK(content_of(open_old) == std::string(1u << 20, 'o'));     // who reads goes on
  CHECK(content_of(cache.open(recent)) == std::string(1u << 20, 'n'));  // and it is brought again
}

TEST_CASE("a folder that cannot be written is refused with a next step") {
  CachedStore place;
  place.stand.put("data/one", "1");
  const fs::path file = place.folder.path() / "file";
  std::ofstream(file) << "x";
  ObjectCache cache("s3://checkpoints", {.folder = file / "below"});
  const S3Object one = cache.find("data/one");
  CHECK_HAS(refusal([&] { cache.open(one); }, ErrorCode::kIo), "set TUNE_DATA_CACHE");
  cache.keep_made(one, "index", "3");  // a favour
  CHECK(cache.find_made(one, "index").empty());
}

TEST_CASE("what was made of an object stands beside it") {
  CachedStore place;
  place.stand.put("data/one", "1");
  ObjectCache cache = place.cache();
  const S3Object one = cache.find("data/one");
  CHECK(cache.find_made(one, "index").empty());
  cache.keep_made(one, "index", "3");
  CHECK(place.cache().find_made(one, "index") == "3");
  CHECK(place.cache().find_made(one, "other").empty());
}

}  // namespace
}  // namespace tune
