#include "trainables/worker_signals.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>

namespace tune {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP};

volatile pid_t the_agent = 0;
volatile pid_t the_worker = 0;  // 0: not forked yet

bool is_from_process(const siginfo_t& info) {
  return info.si_code == SI_USER || info.si_code == SI_TKILL || info.si_code == SI_QUEUE;
}

// Makes only calls that are allowed in a handler.
void end_if_told(int signal, siginfo_t* info, void*) {
  const pid_t self = ::getpid();
  const bool is_child_of_worker = the_worker != 0 && self != the_worker;
  const bool is_told =
      is_from_process(*info) && (info->si_pid == the_agent || info->si_pid == self);
  if (!is_child_of_worker && !is_told) return;
  const int error = errno;
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  ::raise(signal);  // acts when this handler has returned
  errno = error;
}

}  // namespace

void obey_only(pid_t agent) {
  if (the_agent != agent) the_agent = agent;  // where forks share the page, a write copies it
  struct sigaction action {};
  action.sa_sigaction = end_if_told;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

bool is_of_agent(int signal) {
  return std::ranges::find(kSignals, signal) != std::end(kSignals);
}

void is_worker_now() {
  the_worker = ::getpid();
}

}  // namespace tune
