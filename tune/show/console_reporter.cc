#include "tune/show/console_reporter.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "core/agent_contract.h"
#include "core/error.h"
#include "core/platform/side_output.h"
#include "tune/show/terminal_paint.h"

namespace tune {

namespace {

constexpr double kPrintEvery = 30;  // s, where nothing is redrawn

bool may_redraw() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool plain = no_color != nullptr && *no_color != '\0';
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return isatty(STDERR_FILENO) && !plain && !dumb;
}

class StderrConsole : public Console {
 public:
  bool write(std::string_view text) override { return output_.write(text); }
  bool is_idle() const override { return output_.is_idle(); }
  void wait() override { output_.wait(SideOutput::kEndPatience); }
  std::optional<BlockSize> screen() override {
    if (!redraws_) return std::nullopt;
    winsize size{};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
      return BlockSize{80, 24};
    }
    return BlockSize{size.ws_col, size.ws_row};
  }
  bool has_colours() const override { return redraws_; }

 private:
  SideOutput output_{STDERR_FILENO};
  const bool redraws_ = may_redraw();
};

// Without the lines that change by themselves.
std::vector<std::string> essence(std::vector<std::string> lines) {
  std::erase_if(lines, [](const std::string& line) {
    return line.starts_with("Current time:") || line.starts_with("Memory usage");
  });
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text.append(line).append(1, '\n');
  return text;
}

// A text where an earlier one stands (`back` leads there; empty: nothing stands), line by line:
// clearing the screen from its first line makes tmux keep a copy in its history.
std::string written_over(const std::string& back, std::string text) {
  if (back.empty()) return text;
  std::string drawn = back;
  for (const char c : text) {
    if (c == '\n') drawn += "\x1b[K";
    drawn += c;
  }
  return drawn + "\x1b[J";
}

std::vector<std::string> last_lines(std::string_view text, std::size_t count) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(printable(text.substr(0, end)));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<long>(count));
  return lines;
}

}  // namespace

std::unique_ptr<Console> stderr_console() {
  return std::make_unique<StderrConsole>();
}

ConsoleReporter::ConsoleReporter(ReporterOptions options, std::unique_ptr<Console> console)
    : options_(std::move(options)), console_(std::move(console)) {}

ConsoleReporter::~ConsoleReporter() {
  tell_dropped();
}

void ConsoleReporter::status(const ExperimentStatus& status, bool final) {
  if (final) console_->wait();  // for a reader who comes back late
  if (!final && !console_->is_idle()) return;
  tell_dropped();
  const std::optional<BlockSize> screen = console_->screen();
  if (!final && !is_due(status.running_for, screen.has_value())) return;
  shown_ = status.running_for;
  BlockSize size = screen.value_or(BlockSize{});
  if (size.height > 1) --size.height;  // the cursor stands below the block
  if (final) printed_.clear();         // the last one is printed, whether it changed or not
  std::vector<std::string> lines = rendered(status, size);
  screen ? redraw(std::move(lines)) : print(lines);
  if (!final) return;
  drawn_.clear();  // it stays; what is told from here on stands below
  if (status.live) console_->write(joined(render_end(status)));
}

std::vector<std::string> ConsoleReporter::rendered(const ExperimentStatus& status, BlockSize size) {
  std::vector<std::string> lines = render_status(status, options_, memory_, size);
  best_ = status.best ? trial_id(status.experiment_id, *status.best) : std::string();
  const std::string time = time_to_go(status);
  for (std::string& line : lines) {
    const bool is_bar =
        line.ends_with(']') && (line.starts_with('[') || line.starts_with("Number of trials:"));
    const bool has_room = text_width(line) + time.size() + 1 <= size.width;
    if (!time.empty() && has_room && is_bar) line += " " + time;
  }
  return lines;
}

std::string ConsoleReporter::drawable(const std::vector<std::string>& lines) const {
  if (!console_->has_colours()) return joined(lines);
  std::string text;
  for (const std::string& line : lines) text += painted(line, best_) + '\n';
  return text;
}

bool ConsoleReporter::is_due(ExperimentTime running_for, bool in_place) const {
  if (!shown_) return true;
  const double every = options_.every_s > 0 || in_place ? options_.every_s : kPrintEvery;
  return seconds(running_for - *shown_) >= every;
}

// Back to where the block begins. A terminal that became narrower has wrapped its lines.
std::string ConsoleReporter::back_to_block() const {
  const std::optional<BlockSize> screen = console_->screen();
  if (drawn_.empty() || !screen) return {};
  std::size_t height = 0;
  for (const std::string& line : drawn_) {
    height += std::max<std::size_t>(1, (text_width(line) + screen->width - 1) / screen->width);
  }
  return fmt::format("\x1b[{}A\r", std::min(height, std::max<std::size_t>(1, screen->height)));
}

void ConsoleReporter::redraw(std::vector<std::string> lines) {
  const std::string back = back_to_block();
  if (console_->write(written_over(back, drawable(lines)))) drawn_ = std::move(lines);
}

void ConsoleReporter::print(const std::vector<std::string>& lines) {
  std::vector<std::string> now = essence(lines);
  if (now == printed_) return;
  printed_ = std::move(now);
  console_->write(joined(lines) + "\n");
}

void ConsoleReporter::notice(const std::string& text) {
  tell_dropped();
  if (!write_above(text)) ++dropped_;
}

// On a terminal the block moves down by it.
bool ConsoleReporter::write_above(const std::string& text) {
  return console_->write(written_over(back_to_block(), printable(text) + "\n" + drawable(drawn_)));
}

void ConsoleReporter::tell_dropped() {
  if (dropped_ == 0) return;
  const char* plural = dropped_ == 1 ? "" : "s";
  if (write_above(fmt::format("{} notice{} not shown: nobody read this output", dropped_, plural)))
    dropped_ = 0;
}

void ConsoleReporter::failure(const Trial& trial, const std::string& trial_id,
                              const std::filesystem::path& file, bool retried) {
  TUNE_CHECK(trial.failure.has_value());
  const Failure& failure = *trial.failure;
  std::string text = fmt::format("Trial {} failed (attempt {}, rank {}): {}; {}\n  see {}",
                                 trial_id, failure.attempt.value, failure.rank, failure.cause,
                                 retried ? "it is tried again" : "it is in ERROR", file.string());
  const std::vector<std::string> tail = last_lines(failure.stderr_tail, kStderrTailLines);
  if (!tail.empty()) text += fmt::format("\n  its last lines on stderr:");
  for (const std::string& line : tail) text += "\n    " + line;
  notice(text);
}

}  // namespace tune
