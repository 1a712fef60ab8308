// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <csignal>
#include <expected>
#include <functional>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>

#include "cli/commands.hpp"
#include "cli/top_view.hpp"
#include "net/descriptor.hpp"

namespace tidegate::cli {
namespace {

using std::chrono::steady_clock;

/// Switches to the alternate screen, hides the cursor, and cuts long lines instead of wrapping.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// These are global, because the handler of a crash needs them.
termios before;
volatile std::sig_atomic_t entered = 0;

bool WriteAll(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Uses the whole terminal during its lifetime: the alternate screen, no cursor, keys without a
/// line break. Restores the terminal at the end, and after a crash too. Only one Screen may exist.
class Screen {
 public:
  Screen() {
    struct sigaction action {};
    action.sa_handler = [](int signal) {
      Leave();
      raise(signal);  // The signal has its default handler again.
    };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      sigaction(signal, &action, nullptr);
    }
    Enter();
  }
  ~Screen() { Leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Returns the current size of the terminal.
  [[nodiscard]] static Size GetSize() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
      return {};
    }
    return {size.ws_row, size.ws_col};
  }

  /// Draws one line per row. Returns false if the terminal is gone.
  [[nodiscard]] static bool Draw(const std::vector<std::string>& lines) {
    // Writes all at once and clears each line just before it is written, so that nothing flickers.
    // Clearing after it would remove the last character of a line as wide as the terminal.
    std::string frame = "\x1b[H";
    for (std::size_t i = 0; i < lines.size(); ++i) {
      frame.append(i == 0 ? "" : "\r\n").append("\x1b[2K").append(lines[i]);
    }
    return WriteAll(frame);
  }

  static void Enter() {
    if (entered != 0 || tcgetattr(STDIN_FILENO, &before) != 0) return;
    termios raw = before;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C stays a signal.
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    entered = 1;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    (void)WriteAll(kEnter);
  }
  /// Gives the terminal back to the shell. Async-signal-safe.
  static void Leave() noexcept {
    if (entered == 0) return;
    entered = 0;
    (void)WriteAll(kLeave);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
  }
};

/// Polls a server at a steady pace on a thread of its own, so that keys work while the server does
/// not answer. The destructor cancels a request in progress.
class Poller {
 public:
  using OnAnswer = std::function<void(CommandResult<TopSample>)>;

  /// Calls `on_answer` with each sample, on the thread.
  Poller(AdminClient client, Micros every, OnAnswer on_answer)
      : client_(std::move(client)),
        every_(every),
        on_answer_(std::move(on_answer)),
        stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    client_.CancelBy(stop_.get());
    thread_ = std::thread([this] { Run(); });
  }
  ~Poller() {
    (void)eventfd_write(stop_.get(), 1);
    thread_.join();
  }

 private:
  void Run() {
    for (auto due = steady_clock::now();;) {
      on_answer_(TakeSample(client_));
      due = std::max(due + every_, steady_clock::now());
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(due - steady_clock::now()).count();
      pollfd stop{stop_.get(), POLLIN, 0};
      // A signal only makes the next poll early.
      const int wait = static_cast<int>(std::clamp<std::int64_t>(left, 0, 86'400'000));
      if (poll(&stop, 1, wait) > 0) return;
    }
  }

  AdminClient client_;
  const Micros every_;
  const OnAnswer on_answer_;
  net::Descriptor stop_;
  std::thread thread_;
};

/// The event loop of the full-screen view.
class LiveView {
 public:
  LiveView(AdminClient client, Micros every, Colours colours)
      : client_(std::move(client)),
        every_(every),
        colours_(colours),
        model_(client_.address().Display(), steady_clock::now()) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
      signals_.add(signal);
    }
  }

  /// Runs until `q`, Ctrl-C or the end of the terminal. Returns the signal that should end the
  /// process, for the caller to raise once the screen is restored, or else 0. Returns an error if
  /// the server rejects the first request: waiting would not help.
  CommandResult<int> Run() {
    WaitForSignal();
    WaitForKeys();
    const Poller poller(std::move(client_), every_, [this](CommandResult<TopSample> answer) {
      boost::asio::post(context_, [this, answer = std::move(answer)] { OnAnswer(answer); });
    });
    const Screen screen;
    while (going_) {
      going_ =
          Screen::Draw(Render(model_.ViewAt(steady_clock::now()), Screen::GetSize(), colours_));
      // Wakes at least once a second, to show for how long there was no answer.
      context_.run_one_for(std::chrono::seconds{1});
    }
    if (refused_) return std::unexpected(*refused_);
    return fatal_signal_;
  }

 private:
  void OnAnswer(const CommandResult<TopSample>& answer) {
    if (!answer && answer.error().exit == kUsage && model_.sample() == nullptr) {
      refused_ = answer.error();
      going_ = false;
    }
    model_.OnAnswer(answer);
  }

  void WaitForSignal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      OnSignal(signal);
      WaitForSignal();
    });
  }

  void OnSignal(int signal) {
    if (signal == SIGWINCH) return;  // The next Draw reads the size.
    if (signal == SIGTSTP) {
      Screen::Leave();
      raise(SIGSTOP);  // Returns when the process is continued.
      return Screen::Enter();
    }
    going_ = false;
    if (signal != SIGINT) fatal_signal_ = signal;
  }

  void WaitForKeys() {
    keys_.async_wait(keys_.wait_read, [this](const boost::system::error_code& error) {
      going_ = going_ && !error;
      if (going_) OnKeys();
      if (going_) WaitForKeys();
    });
  }

  void OnKeys() {
    char keys[64];
    const ssize_t got = read(STDIN_FILENO, keys, sizeof keys);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      going_ = false;
      return;
    }
    for (ssize_t i = 0; i < got && going_; ++i) {
      if (keys[i] == '\x1b') {
        // An escape sequence, such as an arrow key, ends with its first byte from @ to ~.
        for (i += 2; i < got && (keys[i] < '@' || keys[i] > '~');) ++i;
        continue;
      }
      going_ = model_.OnKey(keys[i]) == TopModel::Next::kStay;
    }
  }

  AdminClient client_;
  const Micros every_;
  const Colours colours_;
  boost::asio::io_context context_;
  boost::asio::signal_set signals_{context_};
  boost::asio::posix::stream_descriptor keys_{context_, dup(STDIN_FILENO)};
  TopModel model_;
  bool going_ = true;
  int fatal_signal_ = 0;
  std::optional<CommandError> refused_;
};

/// Prints one view with the rates between two samples; with --json, an object per sample.
int Report(const TopOptions& options, const AdminClient& client, const Console& console) {
  TopModel model(client.address().Display(), steady_clock::now());
  for (std::uint64_t i = 0;; ++i) {
    if (i != 0) std::this_thread::sleep_for(options.every);
    auto answer = TakeSample(client);
    // After two samples, a stream continues despite errors, because the server may answer again.
    if (!answer && (i < 2 || options.once)) {
      return ReportError("top", answer.error(), options.client.json, console);
    }
    const bool answered = answer.has_value();
    if (!answered) (void)ReportError("top", answer.error(), false, console);
    model.OnAnswer(std::move(answer));
    if (i == 0 || !answered) continue;
    const View view = model.ViewAt(steady_clock::now());
    if (!options.client.json) {
      for (const std::string& line : Render(view, {.rows = 0, .columns = 1000}, console.colours)) {
        console.out << line << '\n';
      }
      return kOk;
    }
    console.out << ShownJson(boost::json::serialize(JsonOf(view))) << std::endl;
    if (options.once) return kOk;
    if (!console.out) return kRuntime;
  }
}

}  // namespace

int Top(const TopOptions& options, const Console& console) {
  auto client = AdminClient::Make(options.client);
  if (!client) return ReportError("top", client.error(), false, console);
  WarnAboutToken("top", *client, console);  // Printed before the full-screen view begins.
  const bool live = !options.once && !options.client.json && isatty(STDIN_FILENO) != 0 &&
                    isatty(STDOUT_FILENO) != 0;
  if (!live) return Report(options, *client, console);
  const auto signal = LiveView(std::move(*client), options.every, console.colours).Run();
  if (!signal) return ReportError("top", signal.error(), false, console);
  if (*signal != 0) raise(*signal);  // So that the parent sees which signal ended the process.
  return kOk;
}

}  // namespace tidegate::cli
