// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.hpp"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

namespace tidegate::cli {
namespace {

/// Another screen; no cursor; lines that are too long are cut rather than wrapped.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// For the handler of a crash, which has nothing else to find it by.
termios before;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
volatile std::sig_atomic_t entered =
    0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

bool WriteAll(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Only what a signal's handler may call.
void Restore() noexcept {
  if (entered == 0) return;
  entered = 0;
  (void)WriteAll(kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void OnCrash(int signal) {
  Restore();
  raise(signal);  // Its handler is the default again.
}

}  // namespace

Screen::Screen() {
  struct sigaction action {};
  action.sa_handler = OnCrash;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    sigaction(signal, &action, nullptr);
  }
  Enter();
}

Screen::~Screen() { Leave(); }

Size Screen::GetSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

void Screen::Enter() {
  if (entered != 0 || tcgetattr(STDIN_FILENO, &before) != 0) return;
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl-C stays a signal.
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  entered = 1;
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  (void)WriteAll(kEnter);
}

void Screen::Leave() { Restore(); }

bool Screen::Draw(const std::vector<std::string>& lines) {
  // In one write, and each line is cleared just before it is written: nothing flickers. Clearing
  // behind it would take the last character of a line as wide as the terminal.
  std::string frame = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i != 0) frame += "\r\n";
    frame += "\x1b[2K" + lines[i];
  }
  return WriteAll(frame);
}

}  // namespace tidegate::cli
