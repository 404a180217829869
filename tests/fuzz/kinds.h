// The kind of message in an input of the target `messages`: its first byte, a letter.
#pragma once

namespace tune::fuzz {

enum class Kind : unsigned char {
  kCommand = 'c',
  kAgentEvent = 'a',
  kWorkerCommand = 'w',
  kWorkerEvent = 'e',
  kSpawnRequest = 's',
  kZygoteMessage = 'z',
  kTrial = 't',
  kResult = 'r',
};

}  // namespace tune::fuzz
