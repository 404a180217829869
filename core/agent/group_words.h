// The words that the agents of a group over several nodes say to each other. The agent of the first
// node leads: it is linked to each of the others (core/platform/group_network.h), and all ranks are
// its own for the attempt's state machine (core/agent/attempt.h), some of them on other nodes. Each
// of the others does for its ranks what the lead says, and tells it all that they do
// (core/agent/attempt_part.h). A frame is a list of words; an empty one shows that its sender is
// there. Both agents have the same version, as their driver has seen to.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/agent_contract.h"
#include "core/wire.h"
#include "core/worker_contract.h"

namespace tune {

// ---- The lead's ---------------------------------------------------------------------------------

struct StartRanks {  // all ranks of the group exist
  template <class Self, class F>
  static void fields(Self&, F& f) {
    f();
  }
};
struct ToRank {
  std::uint32_t rank = 0;
  WorkerCommand command;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.rank, s.command);
  }
};
struct EndRanks {  // by that signal; those that do not exist yet never will
  std::int32_t signal = 0;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.signal);
  }
};

// Where the machines of a group do not write into one folder. This checkpoint is whole on all
// nodes: its part is to be carried (answered by PartStored), or to go.
struct StorePart {
  CheckpointSaved saved;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.saved);
  }
};
struct DropPart {
  CheckpointSaved saved;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.saved);
  }
};
struct ReleaseNode {  // nothing more is asked of it
  template <class Self, class F>
  static void fields(Self&, F& f) {
    f();
  }
};

// ---- The others' --------------------------------------------------------------------------------

// The first word of each: which attempt and node it is. A port may have been another attempt's.
struct NodeLinks {
  std::uint64_t attempt = 0;  // attempt_key()
  std::uint32_t node = 0;
  bool owns_folder = false;  // its ranks write where no other node sees it
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.attempt, s.node, s.owns_folder);
  }
};
struct RankForked {
  std::uint32_t rank = 0;
  std::uint32_t pid = 0;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.rank, s.pid);
  }
};
struct FromRank {
  std::uint32_t rank = 0;
  WorkerEvent event;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.rank, s.event);
  }
};
struct RankGarbled {
  std::uint32_t rank = 0;
  std::string what;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.rank, s.what);
  }
};
struct RankGone {
  std::uint32_t rank = 0;
  bool was_forked = true;  // else it never will be
  bool signalled = false;  // how it ended
  std::int32_t code = 0;
  std::string text;
  std::string why;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.rank, s.was_forked, s.signalled, s.code, s.text, s.why);
  }
};
struct NodeFails {  // by no fault of the trial: its ranks end
  std::string why;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.why);
  }
};
struct NodeLeaves {  // it is to leave: the trial is to save and end
  std::string why;
  Duration grace = std::chrono::seconds(30);  // for that; 0: any time
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.why);
    f.added(s.grace);
  }
};
struct NodeDisk {  // whether its disk keeps up: else its ranks are not heard
  bool keeps_up = true;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.keeps_up);
  }
};

// The part of this node is stored, or given up.
struct PartStored {
  CheckpointSaved saved;
  std::string why_not;  // empty: it is stored
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.saved, s.why_not);
  }
};

// The last lines on stderr of a rank that has failed. Said before that it is gone, by a node whose
// output the lead does not see.
struct RankTail {
  std::uint32_t rank = 0;
  std::string text;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.rank, s.text);
  }
};

// ---- Of both ------------------------------------------------------------------------------------

// Bytes of a connection to rank 0's rendezvous, which other nodes reach through the link. The
// shells carry them (core/agent/rendezvous_tunnel.h); a stream begins with its first word.
struct StreamBytes {
  std::uint32_t stream = 0;
  std::string bytes;  // empty: the stream ends
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.stream, s.bytes);
  }
};

using LeadWord =
    std::variant<StartRanks, ToRank, EndRanks, StreamBytes, StorePart, DropPart, ReleaseNode>;
using NodeWord = std::variant<NodeLinks, RankForked, FromRank, RankGarbled, RankGone, NodeFails,
                              NodeLeaves, NodeDisk, StreamBytes, PartStored, RankTail>;

}  // namespace tune
