#include "core/platform/request_socket.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/error.h"

namespace tune {

namespace {

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) {
    throw Error(ErrorCode::kProcess, fmt::format("{}: the path of a socket may have {} bytes",
                                                 path.string(), sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  return address;
}

FileDescriptor datagram_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.is_open()) return socket;
  throw Error(ErrorCode::kProcess, fmt::format("making a socket: {}", std::strerror(errno)));
}

// One that is longer than kMaxBytes comes cut, and cannot be read.
std::optional<std::string> received(int socket, sockaddr_un* from, socklen_t* from_size) {
  const ssize_t waiting = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
  if (waiting < 0) return std::nullopt;
  std::string text(std::min<std::size_t>(waiting, RequestSocket::kMaxBytes), '\0');
  const ssize_t size =
      ::recvfrom(socket, text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(from), from_size);
  if (size < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(size));
  return text;
}

}  // namespace

RequestSocket::RequestSocket(const std::filesystem::path& path)
    : path_(path), socket_(datagram_socket()) {
  const sockaddr_un address = address_of(path);
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return;
  throw Error(ErrorCode::kProcess,
              fmt::format("taking requests at {}: {}", path.string(), std::strerror(errno)));
}

std::optional<std::string> RequestSocket::take() {
  asker_.size = sizeof asker_.address;
  return received(socket_.get(), &asker_.address, &asker_.size);
}

void RequestSocket::answer(const Asker& asker, const std::string& text) {
  if (asker.size <= sizeof asker.address.sun_family) return;  // it has no name
  ::sendto(socket_.get(), text.data(), std::min(text.size(), kMaxBytes), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&asker.address), asker.size);
}

std::string ask(const std::filesystem::path& path, const std::string& request,
                std::chrono::milliseconds limit) {
  const FileDescriptor socket = datagram_socket();
  sockaddr_un own{};
  own.sun_family = AF_UNIX;  // the kernel gives it a name, at which it is answered
  const sockaddr_un to = address_of(path);
  const bool is_asked =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own.sun_family) == 0 &&
      ::sendto(socket.get(), request.data(), request.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&to), sizeof to) >= 0;
  if (!is_asked) {
    throw Error(ErrorCode::kProcess,
                fmt::format("asking the driver at {}: {}", path.string(), std::strerror(errno)));
  }
  pollfd watched{socket.get(), POLLIN, 0};
  ::poll(&watched, 1, static_cast<int>(limit.count()));
  if (auto answer = received(socket.get(), nullptr, nullptr)) return *answer;
  throw Error(ErrorCode::kProcess,
              fmt::format("asking the driver at {}: it does not answer", path.string()));
}

}  // namespace tune
