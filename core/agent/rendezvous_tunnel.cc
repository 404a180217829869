#include "core/agent/rendezvous_tunnel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/platform/rank_place.h"

namespace tune {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;
constexpr std::size_t kMaxWaitingBytes = 16 << 20;  // for a rank that reads nothing
constexpr int kMaxPieces = 16;                      // of a stream in one turn
constexpr const char* kLoopback = "127.0.0.1";
constexpr int kConnectUs = 50'000;

}  // namespace

// Not before it is needed: a zygote that is forked would have it.
void RendezvousTunnel::open() {
  if (!poll_.is_open()) poll_.reset(::epoll_create1(EPOLL_CLOEXEC));
}

int RendezvousTunnel::listen(LinkId link) {
  open();
  Listener listener = listen_at(kLoopback, 0);
  const int descriptor = listener.socket.get();
  ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  epoll_event watched{};
  watched.events = EPOLLIN;
  ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &watched);
  listeners_[link] = std::move(listener.socket);
  return listener.port;
}

void RendezvousTunnel::close(LinkId link) {
  listeners_.erase(link);
  ports_.erase(link);
  std::erase_if(streams_, [link](const auto& stream) { return stream.first.first == link; });
}

void RendezvousTunnel::take(LinkId link, const StreamBytes& bytes) {
  const Key key{link, bytes.stream};
  auto found = streams_.find(key);
  if (found == streams_.end()) {
    const auto port = ports_.find(link);
    if (port == ports_.end() || bytes.bytes.empty()) return;  // it has ended here
    open();
    found = streams_.try_emplace(key).first;
    found->second.port = port->second;
  }
  Stream& stream = found->second;
  stream.outgoing += bytes.bytes;
  stream.ends = stream.ends || bytes.bytes.empty();
  if (stream.outgoing.size() > kMaxWaitingBytes || !write(stream)) streams_.erase(found);
}

std::vector<std::pair<RendezvousTunnel::LinkId, StreamBytes>> RendezvousTunnel::look() {
  accept_all();
  std::vector<std::pair<LinkId, StreamBytes>> taken;
  for (auto at = streams_.begin(); at != streams_.end();) {
    const auto one = at++;
    if (write(one->second) && read(one->first, one->second, taken)) continue;
    if (!one->second.ends) taken.push_back({one->first.first, {one->first.second, {}}});
    streams_.erase(one);
  }
  return taken;
}

bool RendezvousTunnel::waits_for_rank_0() const {
  return std::ranges::any_of(streams_, [](const auto& one) { return one.second.port != 0; });
}

void RendezvousTunnel::accept_all() {
  for (const auto& [link, listener] : listeners_) {
    while (true) {
      FileDescriptor socket(
          ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket.is_open()) break;
      Stream& stream = streams_[{link, ++last_stream_}];
      stream.socket = std::move(socket);
      watch(stream);
    }
  }
}

// On the loopback it succeeds or is refused at once; a queue that is full takes a moment.
void RendezvousTunnel::connect(Stream& stream) const {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(stream.port));
  ::inet_pton(AF_INET, kLoopback, &to.sin_addr);
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{0, kConnectUs};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return;
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  stream.socket = std::move(socket);
  stream.port = 0;
  watch(stream);
}

void RendezvousTunnel::watch(const Stream& stream) const {
  const int on = 1;
  ::setsockopt(stream.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event watched{};
  watched.events = EPOLLIN;
  if (!stream.outgoing.empty()) watched.events |= EPOLLOUT;
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, stream.socket.get(), &watched) != 0) {
    ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, stream.socket.get(), &watched);
  }
}

bool RendezvousTunnel::write(Stream& stream) const {
  if (stream.port != 0) connect(stream);
  if (stream.port != 0) return true;
  const bool had_more = !stream.outgoing.empty();
  while (!stream.outgoing.empty()) {
    const ssize_t count =
        ::send(stream.socket.get(), stream.outgoing.data(), stream.outgoing.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return false;
    stream.outgoing.erase(0, static_cast<std::size_t>(count));
  }
  if (had_more) watch(stream);
  return !stream.ends || !stream.outgoing.empty();
}

bool RendezvousTunnel::read(const Key& key, Stream& stream,
                            std::vector<std::pair<LinkId, StreamBytes>>& taken) {
  if (stream.port != 0) return true;
  std::array<char, kPieceBytes> piece;
  for (int i = 0; i < kMaxPieces; ++i) {
    const ssize_t count = ::recv(stream.socket.get(), piece.data(), piece.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    if (count == 0) return false;
    taken.push_back({key.first, {key.second, {piece.data(), static_cast<std::size_t>(count)}}});
  }
  return true;
}

}  // namespace tune
