// SPDX-License-Identifier: Apache-2.0
#include "cli/tmux.hpp"

#include <cstdio>
#include <stdexcept>

#include "support/wait.hpp"

namespace tidegate::cli_test {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

std::string Tmux::Run(const std::string& arguments) {
  // Without the variables of a tmux in which this test may run, so that the two do not interact.
  const std::string command = "env -u TMUX -u NO_COLOR TERM=xterm-256color tmux -S " +
                              Quoted((folder_.path() / "tmux").string()) + " -f /dev/null " +
                              arguments + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) throw std::runtime_error("cannot run tmux");
  std::string output;
  char chunk[4096];
  for (std::size_t got; (got = fread(chunk, 1, sizeof chunk, pipe)) > 0;) output.append(chunk, got);
  const int code = pclose(pipe);
  if (code != 0) throw std::runtime_error("tmux " + arguments + ": " + output);
  return output;
}

Tmux::Tmux(int columns, int rows) {
  Run("new-session -d -x " + std::to_string(columns) + " -y " + std::to_string(rows) +
      " 'env PS1=ready: sh'");
  if (!Shows("ready:")) throw std::runtime_error("the shell in tmux does not respond: " + Screen());
}

Tmux::~Tmux() {
  try {
    Run("kill-server");
  } catch (const std::exception&) {  // The server has already ended.
  }
}

void Tmux::Type(std::string_view line) {
  Run("send-keys -l " + Quoted(line));
  Run("send-keys Enter");
}
void Tmux::Press(std::string_view key) { Run("send-keys " + Quoted(key)); }
void Tmux::Resize(int columns, int rows) {
  Run("resize-window -x " + std::to_string(columns) + " -y " + std::to_string(rows));
}
std::string Tmux::Screen() { return Run("capture-pane -p"); }
std::string Tmux::Variable(std::string_view name) {
  std::string value = Run("display-message -p " + Quoted("#{" + std::string(name) + "}"));
  value.erase(value.find_last_not_of('\n') + 1);
  return value;
}
bool Tmux::Shows(std::string_view text) {
  return test::WaitUntil([&] { return Screen().find(text) != std::string::npos; });
}

}  // namespace tidegate::cli_test
