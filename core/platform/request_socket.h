// RequestSocket: where a running driver takes requests of other commands of this user on this host
// (`tune drain`). One text is asked, one is answered.
//
// Datagrams: a client that connects and says nothing cannot exist, so the driver never waits and
// keeps no list of clients. The folder that the socket stands in (0700) decides which users may
// ask.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>

#include "core/platform/process.h"

namespace tune {

class RequestSocket {
 public:
  static constexpr std::size_t kMaxBytes = 65536;  // of a request and of an answer

  explicit RequestSocket(const std::filesystem::path& path);  // Error (kProcess)

  int descriptor() const { return socket_.get(); }  // readable while there is a request
  const std::filesystem::path& path() const { return path_; }
  std::optional<std::string> take();  // the next request; never blocks
  // The one whose request was taken last, for an answer later.
  struct Asker {
    sockaddr_un address{};
    socklen_t size = 0;
  };
  const Asker& asker() const { return asker_; }
  // To that one; none when it has gone meanwhile.
  void answer(const std::string& text) { answer(asker_, text); }
  void answer(const Asker& asker, const std::string& text);

 private:
  std::filesystem::path path_;
  FileDescriptor socket_;
  Asker asker_;
};

// Asks, and waits for the answer. Throws Error (kProcess) when nobody takes requests there, or
// answers within the limit.
std::string ask(const std::filesystem::path& path, const std::string& request,
                std::chrono::milliseconds limit = std::chrono::seconds(20));

}  // namespace tune
