// GroupNetwork: the links between the agents of groups over several nodes: tcp with CURVE. A node
// listens only while it leads such a group, once for each of the others, and a gate admits none but
// agents of this experiment, which have got the key from their driver.
//
// A link is one connection and never comes back: its break is the loss of the node at its other
// end. Frames arrive in order, and those before the break are heard before it. Never blocks; one
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tune {

class GroupNetwork {
 public:
  using LinkId = std::uint64_t;  // 1, 2 ... never used twice

  // `key` is secret. Throws Error (kBadInput) when it is not a key.
  explicit GroupNetwork(const std::string& key);
  ~GroupNetwork();

  // Listens for one other agent at a free port of this address ("10.0.0.1"). Throws Error
  // (kProcess).
  struct Listening {
    LinkId link = 0;
    std::string address;  // "10.0.0.1:4711"
  };
  Listening listen(const std::string& address);
  // Connects, again and again until it succeeds. Throws Error (kProcess) when `address` is not one.
  LinkId connect(const std::string& address);
  void close(LinkId link);  // what was sent still goes out, for a second

  // False: it takes no more, as the other side reads nothing.
  bool send(LinkId link, std::string_view frame);
  struct Heard {
    LinkId link = 0;
    std::vector<std::string> frames;
    bool is_broken = false;  // after them
  };
  std::vector<Heard> receive();  // of links with news
  int descriptor() const;        // readable while there may be some

 private:
  struct Sockets;
  std::unique_ptr<Sockets> sockets_;
};

}  // namespace tune
