// RendezvousTunnel: the way of ranks to the rendezvous of rank 0, when that is on another node.
// Each node of a group but the lead's listens on its loopback; what a rank sends there goes through
// the link between the agents and on to rank 0, on the loopback of the lead's node. So the
// rendezvous is open to nobody else, and encrypted on its way.
//
// One thread; never blocks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/agent/group_words.h"
#include "core/platform/process.h"

namespace tune {

class RendezvousTunnel {
 public:
  using LinkId = std::uint64_t;

  // For ranks of this node. Returns the port. Throws Error.
  int listen(LinkId link);
  // Streams that come by this link lead to that port of this node.
  void lead_to(LinkId link, int port) { ports_[link] = port; }
  void take(LinkId link, const StreamBytes& bytes);
  // The bytes to go, by link.
  std::vector<std::pair<LinkId, StreamBytes>> look();
  void close(LinkId link);

  int descriptor() const { return poll_.get(); }  // -1: there is nothing to watch
  // Rank 0 does not listen yet: look() is to be called again in a moment.
  bool waits_for_rank_0() const;

 private:
  using Key = std::pair<LinkId, std::uint32_t>;
  struct Stream {
    FileDescriptor socket;
    int port = 0;          // to be connected to, again and again; 0: it is
    std::string outgoing;  // to the socket
    bool ends = false;     // when that is written
  };
  void open();
  void accept_all();
  void connect(Stream& stream) const;
  bool write(Stream& stream) const;  // false: it is over
  bool read(const Key& key, Stream& stream, std::vector<std::pair<LinkId, StreamBytes>>& taken);
  void watch(const Stream& stream) const;

  FileDescriptor poll_;
  std::map<LinkId, FileDescriptor> listeners_;
  std::map<LinkId, int> ports_;
  std::map<Key, Stream> streams_;
  std::uint32_t last_stream_ = 0;
};

}  // namespace tune
