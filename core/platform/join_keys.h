// JoinKeys: the CURVE keys of one experiment's driver. They are made once, and kept in the
// experiment's folder over restarts, so that a token stays good until its join key is replaced.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/join_token.h"
#include "core/listen_address.h"

namespace tune {

struct JoinKeys {
  std::string driver_public;  // each kCurveKeyBytes
  std::string driver_secret;
  std::string join_public;
  std::string join_secret;
  std::vector<std::string> addresses;  // where the driver listened last; empty: nowhere yet
  std::string group_secret;  // of the agents among themselves (core/platform/group_network.h)
  int relay_port = 0;        // where it took checkpoints last; 0: nowhere yet
  // Public keys that were replaced, and that a machine which has joined may still have.
  std::vector<std::string> former = {};
};

// The public key of a secret one. Throws Error (kBadInput) when it is not a key.
std::string public_key_of(const std::string& secret_key);

JoinKeys make_keys();                   // Error (kProcess) when this build of libzmq has no CURVE
void replace_join_key(JoinKeys& keys);  // the one before is a former one then

// <experiment>/keys.json. Throws Error (kBadInput) when others may read the file, and Error (kIo,
// kBadInput) when it cannot be read. Nothing: there is none.
std::optional<JoinKeys> read_keys(const std::filesystem::path& experiment);
// The same in a file of that name, for several experiments; made when it is not there.
JoinKeys shared_keys(const std::filesystem::path& file);
void write_keys(const std::filesystem::path& experiment, const JoinKeys& keys);

JoinToken token_of(const JoinKeys& keys, const std::string& experiment_id);

// The token in a file. Throws Error (kBadInput) when others may read the file.
JoinToken read_token(const std::filesystem::path& file);

std::vector<Interface> network_interfaces();  // those that are up

}  // namespace tune
