// SPDX-License-Identifier: Apache-2.0
#include "cli/top.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <ostream>
#include <thread>

#include "cli/exit.hpp"
#include "cli/screen.hpp"
#include "cli/shown_text.hpp"
#include "cli/top_model.hpp"
#include "cli/top_poller.hpp"
#include "cli/top_render.hpp"
#include "net/descriptor.hpp"

namespace tidegate::cli {
namespace {

using std::chrono::steady_clock;

/// The signals that the view handles itself, in its loop: blocked here, and in every thread that is
/// started later.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
      sigaddset(&set, signal);
    }
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    fd_ = net::Descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// 0: there is none.
  [[nodiscard]] int Next() const {
    signalfd_siginfo info{};
    return read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                              : 0;
  }

 private:
  sigset_t before_{};
  net::Descriptor fd_;
};

/// The loop of the full screen.
class LiveView {
 public:
  LiveView(AdminClient client, Micros every, Colours colours)
      : model_(client.address().Told(), steady_clock::now()),
        poller_(std::move(client), every),
        colours_(colours) {}

  /// Until `q`, Ctrl-C or the terminal's end. A signal that should end the process is returned: it
  /// is for the caller to die of it, once the screen is restored. Else 0. The failure is of a
  /// server that will not answer such a caller, however long one waits.
  Asked<int> Run() {
    while (going_) {
      going_ =
          screen_.Draw(Render(model_.ViewAt(steady_clock::now()), Screen::GetSize(), colours_));
      // Also once a second, for how long there was no answer.
      pollfd polled[] = {
          {STDIN_FILENO, POLLIN, 0}, {poller_.ready(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
      if (poll(polled, 3, 1000) < 0 && errno != EINTR) break;
      if (polled[2].revents != 0) OnSignals();
      if (polled[0].revents != 0) OnKeys();
      if (polled[1].revents != 0) {
        if (auto answer = poller_.Take()) OnAnswer(std::move(*answer));
      }
    }
    if (refused_) return std::unexpected(*refused_);
    return died_of_;
  }

 private:
  void OnAnswer(Asked<TopSample> answer) {
    if (!answer && answer.error().exit == kUsage && model_.sample() == nullptr) {
      refused_ = answer.error();
      going_ = false;
    }
    model_.OnAnswer(std::move(answer));
  }

  void OnSignals() {
    while (const int signal = signals_.Next()) {
      if (signal == SIGWINCH) continue;  // The next drawing asks for the size.
      if (signal == SIGTSTP) {
        screen_.Leave();
        raise(SIGSTOP);  // Goes on here, when it is continued.
        screen_.Enter();
        continue;
      }
      going_ = false;
      if (signal != SIGINT) died_of_ = signal;
    }
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
      if (keys[i] == '\x1b') return;  // An arrow or the like: its letters are not meant for us.
      going_ = model_.OnKey(keys[i]) == TopModel::Next::kStay;
    }
  }

  const Signals signals_;  // Before the poller's thread.
  TopModel model_;
  TopPoller poller_;
  Screen screen_;
  const Colours colours_;
  bool going_ = true;
  int died_of_ = 0;
  std::optional<AskFailure> refused_;
};

void PrintPlain(const View& view, const Console& console) {
  for (const std::string& line : Render(view, {.rows = 0, .columns = 1000}, console.colours)) {
    console.out << line << '\n';
  }
}

/// Two answers for the first rates; with --json, further ones.
int Report(const TopOptions& options, const AdminClient& client, const Console& console) {
  TopModel model(client.address().Told(), steady_clock::now());
  for (std::uint64_t i = 0;; ++i) {
    if (i != 0) std::this_thread::sleep_for(options.every);
    auto answer = TakeSample(client);
    // Later on it may come back: who reads a stream waits for that.
    if (!answer && (i < 2 || options.once)) {
      return Tell("top", answer.error(), options.ask.json, console);
    }
    const bool answered = answer.has_value();
    if (!answered) (void)Tell("top", answer.error(), false, console);
    model.OnAnswer(std::move(answer));
    if (i == 0 || !answered) continue;
    const View view = model.ViewAt(steady_clock::now());
    if (!options.ask.json) {
      PrintPlain(view, console);
      return kOk;
    }
    console.out << ShownJson(boost::json::serialize(JsonOf(view, *model.sample()))) << std::endl;
    if (options.once) return kOk;
    if (!console.out) return kRuntime;
  }
}

}  // namespace

int Top(const TopOptions& options, const Console& console) {
  auto client = AdminClient::Make(options.ask);
  if (!client) return Tell("top", client.error(), false, console);
  Warn("top", *client, console);  // Before there is a screen.
  const bool live =
      !options.once && !options.ask.json && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (!live) return Report(options, *client, console);
  const auto signal = LiveView(std::move(*client), options.every, console.colours).Run();
  if (!signal) return Tell("top", signal.error(), false, console);
  if (*signal != 0) raise(*signal);  // As if it had not been handled: whoever sent it sees that.
  return kOk;
}

}  // namespace tidegate::cli
