#include "core/agent/own_stay.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>

#include "core/agent/agent.h"
#include "core/platform/process.h"

namespace tune {

namespace {

std::filesystem::path sign_in(const std::string& runtime_directory) {
  return std::filesystem::path(runtime_directory) / kStaysFile;
}

}  // namespace

// It comes in one piece.
std::optional<JoinToken> token_of_driver(int driver_alive_fd) {
  std::array<char, PIPE_BUF> text{};
  ssize_t size = 0;
  do size = ::read(driver_alive_fd, text.data(), text.size());
  while (size < 0 && errno == EINTR);
  if (size <= 0) return std::nullopt;
  return token_of_text({text.data(), static_cast<std::size_t>(size)});
}

void show_that_it_stays(const std::string& runtime_directory) {
  const FileDescriptor made(
      ::open(sign_in(runtime_directory).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

void show_that_it_ends(const std::string& runtime_directory) {
  std::error_code ignored;
  std::filesystem::remove(sign_in(runtime_directory), ignored);
}

}  // namespace tune
