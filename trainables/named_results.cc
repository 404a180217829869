#include "trainables/named_results.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "core/error.h"
#include "core/json.h"

namespace tune {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxNameBytes = 1024;
constexpr std::size_t kMaxPartBytes = 200;  // room for what a temporary name adds

// The reason why the name cannot be a result's; nullptr when it can.
const char* complaint_about(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > kMaxNameBytes) return "it is longer than 1024 bytes";
  if (name.front() == '/') return "it begins with '/'";
  if (std::ranges::any_of(name, [](unsigned char c) { return c < ' '; })) {
    return "it holds a control character";
  }
  while (true) {
    const std::size_t end = name.find('/');
    const std::string_view part = name.substr(0, end);
    if (part.empty()) return "a part of it is empty";
    if (part == "." || part == "..") return "'.' and '..' are not parts of a name";
    if (part.size() > kMaxPartBytes) return "a part of it is longer than 200 bytes";
    if (end == std::string_view::npos) return nullptr;
    name.remove_prefix(end + 1);
  }
}

Error refusal(const std::string& name, const std::string& why) {
  std::string quoted;  // whatever is in it
  append_json_text(quoted, std::string_view(name).substr(0, kMaxNameBytes));
  return Error(ErrorCode::kBadInput, fmt::format("submitting the result {}: {}", quoted, why));
}

Error write_error(const fs::path& path, const std::string& cause) {
  return Error(ErrorCode::kIo, fmt::format("submitting a result: {}: {}", path.string(), cause));
}

}  // namespace

void NamedResults::submit(const std::string& name, std::string_view bytes) const {
  if (const char* complaint = complaint_about(name)) {
    throw refusal(name, fmt::format("{}: name it like worker/0/data.json", complaint));
  }
  if (folder_.empty()) {
    throw refusal(name, "there is no folder for results: name one in the Distributor's `folder`");
  }
  const fs::path path = folder_ / name;
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  if (failed) throw write_error(path.parent_path(), failed.message());

  static std::atomic<unsigned> count{0};
  const fs::path temporary =
      path.parent_path() /
      fmt::format(".{}.tmp-{}-{}", path.filename().string(), getpid(), ++count);
  errno = 0;
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    const std::string cause = std::strerror(errno);
    fs::remove(temporary, failed);
    throw write_error(path, cause);
  }
  fs::rename(temporary, path, failed);
  if (failed) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw write_error(path, failed.message());
  }
  if (told_) told_(name);
}

}  // namespace tune
