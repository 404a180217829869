// The relay contract: the messages between an agent that does not see the experiment's folder and
// that folder's side, over a connection of their own (core/platform/bulk_socket.h). Checkpoints
// travel by it both ways, the output of trials to the experiment's folder, a plugin from there.
//
// The side that gets a folder asks for each piece of it (WantPiece), so it alone decides how much
// is on the way. Any message may be lost, or come twice: each side asks again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/contract_values.h"
#include "core/ids.h"
#include "core/wire.h"

namespace tune {

// A file, or folder, of a checkpoint.
struct RelayFile {
  std::string path;  // within the checkpoint: "model/weights.pt"
  bool is_folder = false;
  std::uint64_t size = 0;
  std::uint32_t sum = 0;   // crc32c of the content
  std::uint32_t mode = 0;  // permissions
  friend bool operator==(const RelayFile&, const RelayFile&) = default;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.path, s.is_folder, s.size, s.sum, s.mode);
  }
};
inline constexpr std::size_t kMaxRelayFiles = 50'000;
inline constexpr std::size_t kMaxRelayPath = 4096;
inline constexpr std::size_t kMaxManifestBytes = 8u << 20;  // of all paths together
inline constexpr std::uint32_t kRelayPieceBytes = 256u << 10;

// The reason why these are not the files of a folder that may be written; empty: they are. Paths
// stay within the folder.
std::string why_not_relayed(const std::vector<RelayFile>& files);

// Copies of plugins below the experiment's folder: "plugin/" and a fingerprint.
inline constexpr const char* kPluginCopies = "plugin/";
bool is_plugin_copy(std::string_view folder);

// One machine's part of the checkpoint of a group over several that do not write into one folder.
struct CheckpointPart {
  std::uint32_t node = 0;  // of the group
  std::string host;        // for people
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.node, s.host);
  }
};
// The stored share of a checkpoint: the part of one machine, for itself; or, when all parts are
// there, the checkpoint as a whole, which they are put together to. Without either: all of it.
struct CheckpointShare {
  std::optional<std::uint32_t> part = {};
  std::vector<CheckpointPart> joins = {};
  bool is_all() const { return !part && joins.empty(); }
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.part, s.joins);
  }
};

// Numbers are the agent's, and never used twice by it.

// ---- Agent -> experiment's folder ---------------------------------------------------------------

struct RelayHello {
  template <class Self, class F>
  static void fields(Self&, F& f) {
    f();
  }
};
// This checkpoint is to be stored. Said again and again until FolderStored.
struct OfferFolder {
  std::uint64_t number = 0;
  CheckpointOrigin folder;
  std::vector<RelayFile> files;  // none of what parts are put together to
  CheckpointShare share = {};
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.folder, s.files);
    f.added(s.share);
  }
};
// The agent needs this checkpoint, or the folder with a copy of the plugin. Said again and again
// until FolderFound.
struct FetchFolder {
  std::uint64_t number = 0;
  CheckpointOrigin folder;
  std::string plugin = {};  // as JoinedSetup has it; empty: the checkpoint
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.folder);
    f.added(s.plugin);
  }
};
// The next output of a trial. `after`: the file's size after the last; nothing: only that is asked.
struct RelayOutput {
  std::uint64_t number = 0;
  TrialNumber trial;
  std::string name;  // "stdout", "stderr.3", "usage.jsonl"
  std::optional<std::uint64_t> after;
  Packed bytes;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.trial, s.name, s.after, s.bytes);
  }
};
inline constexpr std::size_t kRelayOutputBytes = 64u << 10;

// ---- Both ways ----------------------------------------------------------------------------------

struct WantPiece {
  std::uint64_t number = 0;  // of the offer or the fetch
  std::uint32_t file = 0;    // its index in `files`
  std::uint64_t offset = 0;  // a multiple of kRelayPieceBytes
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.file, s.offset);
  }
};
struct RelayPiece {
  std::uint64_t number = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  Packed bytes;
  std::string error;  // not empty: it cannot be read
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.file, s.offset, s.bytes, s.error);
  }
};

// ---- Experiment's folder -> agent ---------------------------------------------------------------

struct FolderStored {  // complete, flushed and under its final name
  std::uint64_t number = 0;
  std::string error;  // not empty: it is not
  bool is_of_trial = false;  // the error: its ranks have written what cannot be put together
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.error);
    f.added(s.is_of_trial);
  }
};
struct FolderFound {
  std::uint64_t number = 0;
  std::vector<RelayFile> files;
  std::string error;  // not empty: it cannot be read
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.files, s.error);
  }
};
struct OutputTaken {
  std::uint64_t number = 0;
  std::uint64_t size = 0;  // of the file
  std::string error;       // not empty: it cannot be written
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.number, s.size, s.error);
  }
};

using RelayRequest =
    std::variant<RelayHello, OfferFolder, FetchFolder, RelayOutput, WantPiece, RelayPiece>;
using RelayAnswer =
    std::variant<RelayHello, FolderStored, FolderFound, OutputTaken, WantPiece, RelayPiece>;

}  // namespace tune
