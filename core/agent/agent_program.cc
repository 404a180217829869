#include "core/agent/agent_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/agent_contract.h"
#include "core/error.h"
#include "core/platform/files.h"
#include "core/platform/process.h"
#include "core/wire.h"
#include "core/worker_contract.h"

namespace tune {
namespace {

// Names the descriptor that holds the order.
constexpr const char* kOrderVariable = "TUNE_AGENT_ORDER";
constexpr const char* kZygoteVariable = "TUNE_AGENT_ZYGOTE";
constexpr int kFailedExitCode = 3;
constexpr std::size_t kMaxOrderBytes = 128 << 10;

// Every field of AgentOptions but the zygote that is forked.
struct AgentOrder {
  std::string driver_address;
  std::int32_t driver_alive_fd = -1;
  std::string stays_as;
  std::string runtime_directory;
  std::int64_t cpu_units = 0;
  std::int64_t memory_bytes = 0;
  std::vector<GpuInfo> gpus;
  std::string hostname;
  std::string ip;
  std::vector<std::string> zygote_command;
  std::map<std::string, std::string> zygote_environment;
  std::string zygote_loads;
  std::string zygote_log;
  std::int64_t trial_memory_bytes = 0;
  std::int32_t lock_fd = -1;
  std::int32_t runtime_lock_fd = -1;
  template <class Self, class F>
  static void fields(Self& s, F& f) {
    f(s.driver_address, s.driver_alive_fd, s.stays_as, s.runtime_directory, s.cpu_units,
      s.memory_bytes, s.gpus, s.hostname, s.ip, s.zygote_command, s.zygote_environment,
      s.zygote_loads, s.zygote_log, s.trial_memory_bytes, s.lock_fd, s.runtime_lock_fd);
  }
};

// In memory, open at its beginning in the program that is executed.
FileDescriptor file_of(const std::string& bytes) {
  FileDescriptor file(::memfd_create("tune-agent-order", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(bytes.size());
  if (!file.is_open() || ::pwrite(file.get(), bytes.data(), bytes.size(), 0) != size) {
    throw Error(ErrorCode::kProcess,
                fmt::format("starting the node agent: memfd: {}", std::strerror(errno)));
  }
  return file;
}

std::string content_of(int descriptor) {
  std::string bytes;
  char part[4096];
  for (ssize_t count = 0; (count = ::read(descriptor, part, sizeof part)) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    bytes.append(part, static_cast<std::size_t>(count));
  }
  return bytes;
}

std::vector<std::string> own_command_line() {
  const std::string text = read_file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// The descriptors in an order, in the order in which they travel.
std::array<int*, 3> descriptors_of(AgentOptions& options) {
  return {&options.driver_alive_fd, &options.lock_fd, &options.runtime_lock_fd};
}

constexpr std::size_t kDescriptorRoom = CMSG_SPACE(3 * sizeof(int));

// Waits for it; nothing when the driver has ended without one.
std::optional<AgentOptions> receive_order(int socket) {
  std::string bytes(kMaxOrderBytes, '\0');
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) char ancillary[kDescriptorRoom];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  ssize_t count = 0;
  do {
    count = ::recvmsg(socket, &message, 0);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return std::nullopt;
  AgentOptions options = unpacked_options({bytes.data(), static_cast<std::size_t>(count)});
  std::array<int, 3> received{-1, -1, -1};
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
    const std::size_t size = std::min(header->cmsg_len - CMSG_LEN(0), sizeof received);
    std::memcpy(received.data(), CMSG_DATA(header), size);
  }
  std::size_t next = 0;
  for (int* descriptor : descriptors_of(options)) {
    if (*descriptor >= 0) *descriptor = received.at(next++);
  }
  if (options.driver_alive_fd >= 0) ::fcntl(options.driver_alive_fd, F_SETFD, FD_CLOEXEC);
  return options;
}

// "<pid>:<descriptor>".
void take_zygote(AgentOptions& options) {
  const char* told = std::getenv(kZygoteVariable);
  if (told == nullptr) return;
  int pid = -1;
  int control = -1;
  if (std::sscanf(told, "%d:%d", &pid, &control) != 2) {
    throw Error(ErrorCode::kProtocol, fmt::format("{}={}", kZygoteVariable, told));
  }
  options.zygote_pid = pid;
  options.zygote_control = control;
  ::unsetenv(kZygoteVariable);
}

bool is_socket(int descriptor) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

// Nothing: there is none, and this process is not needed.
std::optional<AgentOptions> take_order(int descriptor) {
  if (!is_socket(descriptor)) return unpacked_options(content_of(descriptor));
  auto options = receive_order(descriptor);
  if (options) take_zygote(*options);
  return options;
}

// Runs before main(): there is no thread and no socket, and none of the program's own code has run.
__attribute__((constructor)) void become_agent_if_told() {
  const char* told = std::getenv(kOrderVariable);
  if (told == nullptr) return;
  const FileDescriptor order(std::atoi(told));
  ::unsetenv(kOrderVariable);  // not for programs that the agent starts
  try {
    const auto options = take_order(order.get());
    if (!options) ::_exit(0);
    if (options->runtime_lock_fd >= 0) ::fcntl(options->runtime_lock_fd, F_SETFD, FD_CLOEXEC);
    be_agent(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: agent: reading its order: %s\n", error.what());
    ::_exit(kFailedExitCode);
  }
}

}  // namespace

std::string packed_options(const AgentOptions& options) {
  AgentOrder order;
  order.driver_address = options.driver_address;
  order.driver_alive_fd = options.driver_alive_fd;
  order.stays_as = options.stays_as;
  order.runtime_directory = options.runtime_directory;
  order.cpu_units = options.resources.cpu_units;
  order.memory_bytes = options.resources.memory_bytes;
  for (const Gpu& gpu : options.resources.gpus) {
    order.gpus.push_back({gpu.device, gpu.name, gpu.memory_bytes, gpu.uuid});
  }
  order.hostname = options.hostname;
  order.ip = options.ip;
  order.zygote_command = options.zygote_command;
  order.zygote_environment = options.zygote_environment;
  order.zygote_loads = options.zygote_loads;
  order.zygote_log = options.zygote_log;
  order.trial_memory_bytes = options.trial_memory_bytes;
  order.lock_fd = options.lock_fd;
  order.runtime_lock_fd = options.runtime_lock_fd;
  return encoded(order);
}

AgentOptions unpacked_options(std::string_view bytes) {
  auto order = decoded<AgentOrder>(bytes);
  AgentOptions options;
  options.driver_address = std::move(order.driver_address);
  options.driver_alive_fd = order.driver_alive_fd;
  options.stays_as = std::move(order.stays_as);
  options.runtime_directory = std::move(order.runtime_directory);
  options.resources.cpu_units = order.cpu_units;
  options.resources.memory_bytes = order.memory_bytes;
  for (GpuInfo& gpu : order.gpus) {
    options.resources.gpus.push_back(
        {std::move(gpu.device), std::move(gpu.name), gpu.memory_bytes, std::move(gpu.uuid)});
  }
  options.hostname = std::move(order.hostname);
  options.ip = std::move(order.ip);
  options.zygote_command = std::move(order.zygote_command);
  options.zygote_environment = std::move(order.zygote_environment);
  options.zygote_loads = std::move(order.zygote_loads);
  options.zygote_log = std::move(order.zygote_log);
  options.trial_memory_bytes = order.trial_memory_bytes;
  options.lock_fd = order.lock_fd;
  options.runtime_lock_fd = order.runtime_lock_fd;
  return options;
}

pid_t start_agent_program(const AgentOptions& options) {
  TUNE_CHECK(!options.zygote);
  const FileDescriptor order = file_of(packed_options(options));
  SpawnOptions program;
  program.program = "/proc/self/exe";
  program.command = own_command_line();
  program.environment[kOrderVariable] = std::to_string(order.get());
  program.keep = {order.get(), options.driver_alive_fd};
  for (const int lock : {options.lock_fd, options.runtime_lock_fd}) {
    if (lock >= 0) program.keep.push_back(lock);
  }
  program.new_session = true;
  return spawn(program);
}

void start_waiting_agent(const WaitingAgent& agent, const AgentOptions& options) {
  TUNE_CHECK(!options.zygote);
  const std::string bytes = packed_options(options);
  AgentOptions copy = options;
  std::array<int, 3> descriptors{};
  std::size_t count = 0;
  for (const int* descriptor : descriptors_of(copy)) {
    if (*descriptor >= 0) descriptors.at(count++) = *descriptor;
  }
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char ancillary[kDescriptorRoom] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(header), descriptors.data(), count * sizeof(int));
  if (::sendmsg(agent.order_socket, &message, MSG_NOSIGNAL) < 0) {
    throw Error(ErrorCode::kProcess, fmt::format("starting the node agent (pid {}): {}", agent.pid,
                                                 std::strerror(errno)));
  }
}

namespace {

// Whoever reads what the driver prints must see its end.
void leave_output_of_driver(const std::string& log) {
  const FileDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const FileDescriptor file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  ::dup2(nothing.get(), STDIN_FILENO);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(file.is_open() ? file.get() : nothing.get(), output);
  }
}

}  // namespace

void be_agent(const AgentOptions& options) {
  // Blocked first: the driver's signal handling must not happen here.
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&watched, signal);
  ::sigprocmask(SIG_SETMASK, &watched, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE}) {
    std::signal(signal, SIG_DFL);
  }
  ::setsid();  // the terminal's signals are the driver's business
  if (!options.stays_as.empty()) leave_output_of_driver(options.zygote_log);
  int code = kFailedExitCode;
  try {
    code = run_agent(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: agent: %s\n", error.what());
  }
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace tune
