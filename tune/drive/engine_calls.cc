#include "tune/drive/engine_calls.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/strings.h"
#include "tune/drive/engine_words.h"

namespace tune {

namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kMostErrors = 2000;  // the last of what a failed command printed
constexpr std::chrono::milliseconds kNap{20};
constexpr std::chrono::milliseconds kKillNap{1};

// In memory: a pipe would have to be read all the time.
FileDescriptor memory_file(const char* name) {
  FileDescriptor file(::memfd_create(name, MFD_CLOEXEC));
  if (!file.is_open()) throw Error(ErrorCode::kProcess, "running a command: memfd_create failed");
  return file;
}

// A file of the text, and its name in the words instead of kInputFile.
FileDescriptor input_file(const std::string& text, std::vector<std::string>& words) {
  FileDescriptor file = memory_file("input");
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(file.get(), text.data() + done, text.size() - done);
    if (count <= 0) throw Error(ErrorCode::kProcess, "running a command: no room for its input");
    done += static_cast<std::size_t>(count);
  }
  std::ranges::replace(words, std::string(kInputFile), fmt::format("/dev/fd/{}", file.get()));
  return file;
}

std::size_t size_of(const FileDescriptor& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

std::string content_of(const FileDescriptor& file, std::size_t most, bool from_the_end) {
  const std::size_t size = size_of(file);
  std::string text(std::min(size, most), '\0');
  const std::size_t begin = from_the_end ? size - text.size() : 0;
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), static_cast<off_t>(begin));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

// "sbatch: error: invalid partition specified; sbatch: error: ..."
std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c != '\n') {
      line += c;
    } else if (!line.empty() && !line.ends_with("; ")) {
      line += "; ";
    }
  }
  while (line.ends_with(' ') || line.ends_with(';')) line.pop_back();
  return line;
}

std::string line_of(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_word(word));
  return join(quoted, " ");
}

}  // namespace

void EngineCalls::add(EngineCall call) {
  waiting_.push_back(std::move(call));
  while (running_.size() < kAtOnce && !waiting_.empty()) {
    begin(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

void EngineCalls::begin(EngineCall call) {
  Running one;
  one.call = std::move(call);
  try {
    one.output = memory_file("output");
    one.errors = memory_file("errors");
    SpawnOptions options;
    options.command = one.call.words;
    FileDescriptor input;
    if (!one.call.input.empty()) {
      input = input_file(one.call.input, options.command);
      options.keep = {input.get()};
    }
    options.output = one.output.get();
    options.errors = one.errors.get();
    options.new_session = true;
    options.death_signal = SIGKILL;  // what it has done by then is found by name
    one.child = Child(spawn(options));
  } catch (const Error& error) {
    return end(one, error.what());
  }
  one.end = clock_.monotonic() + limit_;
  running_.push_back(std::move(one));
}

void EngineCalls::end(const Running& one, std::string why_not) {
  EngineAnswer answer{one.call, {}, std::move(why_not)};
  if (one.output.is_open()) answer.output = content_of(one.output, kMostOutput, false);
  ended_.push_back(std::move(answer));
}

// True: it has ended.
bool EngineCalls::look_at(Running& one) {
  const std::string program = one.call.words.empty() ? "" : one.call.words.front();
  // It is in memory; and jobs that a list cut short does not name would be taken for ended.
  if (std::max(size_of(one.output), size_of(one.errors)) > kMostOutput) {
    kill(std::move(one.child));
    end(one, fmt::format("{} printed more than {} MiB", program, kMostOutput >> 20));
    return true;
  }
  if (one.child.has_ended()) {
    const int status = one.child.status();
    std::string said = in_one_line(content_of(one.errors, kMostErrors, true));
    if (said.empty()) said = in_one_line(content_of(one.output, kMostErrors, true));
    if (said.empty()) said = line_of(one.call.words);
    end(one, status == 0 ? "" : fmt::format("{} {}: {}", program, describe_exit(status), said));
    return true;
  }
  if (clock_.monotonic() < one.end) return false;
  kill(std::move(one.child));
  end(one, fmt::format("{} did not end within {} s", program, limit_.count()));
  return true;
}

// With all that it has started. Its end is not waited for.
void EngineCalls::kill(Child child) {
  child.signal_group(SIGKILL);
  child.signal(SIGKILL);
  killed_.push_back(std::move(child));
}

std::vector<EngineAnswer> EngineCalls::take() {
  std::erase_if(killed_, [](Child& one) { return one.has_ended(); });
  std::erase_if(running_, [this](Running& one) { return look_at(one); });
  while (running_.size() < kAtOnce && !waiting_.empty()) {
    begin(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return std::exchange(ended_, {});
}

std::vector<EngineAnswer> EngineCalls::finish(nanoseconds patience) {
  std::vector<EngineAnswer> all;
  const nanoseconds end = clock_.monotonic() + patience;
  while (true) {
    for (EngineAnswer& answer : take()) all.push_back(std::move(answer));
    if (is_idle() || clock_.monotonic() > end) break;
    std::this_thread::sleep_for(kNap);
  }
  give_up_all();
  return all;
}

EngineCalls::~EngineCalls() {
  give_up_all();
  const nanoseconds until = clock_.monotonic() + kKillWait;
  while (true) {
    std::erase_if(killed_, [](Child& one) { return one.has_ended(); });
    if (killed_.empty() || clock_.monotonic() > until) break;
    std::this_thread::sleep_for(kKillNap);
  }
  for (Child& one : killed_) one.let_go();
}

void EngineCalls::give_up_all() {
  for (Running& one : running_) {
    kill(std::move(one.child));
    given_up_.push_back(std::move(one.call));
  }
  running_.clear();
  std::ranges::move(std::exchange(waiting_, {}), std::back_inserter(given_up_));
}

const Clock& EngineCalls::system_clock() {
  static const SystemClock clock;
  return clock;
}

std::string output_of(const std::vector<std::string>& words, std::chrono::seconds limit,
                      const std::string& input) {
  EngineCalls calls(EngineCalls::system_clock(), limit);
  calls.add({.words = words, .input = input});
  const EngineAnswer answer = calls.finish(2 * limit).at(0);
  if (!answer.why_not.empty()) throw Error(ErrorCode::kBadInput, answer.why_not);
  return answer.output;
}

}  // namespace tune
