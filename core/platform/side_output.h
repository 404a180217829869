// Text for a descriptor whose reader may be away for hours: a terminal after Ctrl-S, the pipe to an
// ssh client whose laptop sleeps. A thread writes it, so that its owner never waits.
//
// The simpler ways fail. A plain write() stops the writer together with the reader. O_NONBLOCK is a
// property of the open file, which the shell and every program on the terminal share: they lose
// output by it. poll() says that some bytes fit; a terminal or a pipe with other writers then still
// blocks a longer write() until all of it is taken. Opening /dev/stderr again is refused for
// sockets and after a change of user. So the thread may be stuck in write(), and is left there when
// its owner ends: it holds only its own text.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace tune {

class SideOutput {
 public:
  // The descriptor stays the caller's. The thread starts with the first text, so that a process can
  // be forked before.
  explicit SideOutput(int descriptor) : descriptor_(descriptor) {}
  ~SideOutput();  // finish()
  SideOutput(const SideOutput&) = delete;

  // False, and nothing is taken, when kMaxWaitingBytes wait already. Text that the descriptor
  // refuses is lost.
  bool write(std::string_view text);
  bool is_idle() const;  // everything is written
  // Waits at most this long; returns whether everything is written.
  bool wait(std::chrono::milliseconds limit) const;
  enum class Written { kAll, kRefused, kNotRead };
  // Waits kEndPatience for the reader; what was not taken by then is lost.
  Written finish();

  static constexpr std::size_t kMaxWaitingBytes = 256u << 10;
  static constexpr std::chrono::milliseconds kEndPatience{2000};

 private:
  struct Shared;
  static void work(const std::shared_ptr<Shared>& shared, int descriptor);

  int descriptor_;
  std::shared_ptr<Shared> shared_;  // with the thread; null: nothing was written yet
};

// For the last words of a process: returns once the text is written or refused, or its reader has
// taken nothing for SideOutput::kEndPatience.
SideOutput::Written write_or_give_up(int descriptor, std::string_view text);
// Without a thread, for a line that may be left out: writes it unless poll() says that nothing
// fits. Async-signal-safe.
bool write_if_it_fits(int descriptor, std::string_view line);

}  // namespace tune
