#include "bench/torch_ranks.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "core/error.h"
#include "core/freed_memory.h"
#include "core/platform/rank_place.h"
#include "trainables/huge_heap.h"

namespace tune::bench {

void be_like_a_zygote() {
  keep_freed_memory();
  make_heap_huge();
}

double in_two_ranks(const std::function<double(const Rendezvous&)>& function) {
  Rendezvous place;
  place.size = 2;
  Listener listener = listen_at(place.address, 0);
  place.port = listener.port;
  const FileDescriptor memory = memory_of_ranks();
  int pipe[2];
  if (::pipe(pipe) != 0) throw Error(ErrorCode::kProcess, "pipe");
  std::vector<pid_t> ranks;
  for (place.rank = 0; place.rank < place.size; ++place.rank) {
    const pid_t pid = ::fork();
    if (pid != 0) {
      ranks.push_back(pid);
      continue;
    }
    if (place.rank == 0) place.listening_socket = listener.socket.release();
    listener.socket.reset();
    place.shared_memory = ::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0);
    at::set_num_threads(1);
    Environment environment;
    add_bucket_memory(environment, [](const std::string&) { return false; });
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    try {
      const double value = function(place);
      if (place.rank == 0 && ::write(pipe[1], &value, sizeof value) != sizeof value) ::_exit(1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", place.rank, error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(pipe[1]);
  double value = -1;
  const bool whole = ::read(pipe[0], &value, sizeof value) == sizeof value;
  ::close(pipe[0]);
  for (const pid_t pid : ranks) ::waitpid(pid, nullptr, 0);
  if (!whole) throw Error(ErrorCode::kProcess, "a rank failed");
  return value;
}

}  // namespace tune::bench
