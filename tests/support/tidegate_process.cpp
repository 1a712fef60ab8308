// SPDX-License-Identifier: Apache-2.0
#include "support/tidegate_process.hpp"

#include <charconv>
#include <stdexcept>

#include "support/files.hpp"
#include "support/wait.hpp"

namespace tidegate::test {
namespace {

std::vector<std::string> WithProgram(const std::filesystem::path& binary,
                                     std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), binary.string());
  return arguments;
}

}  // namespace

std::filesystem::path TidegateProcess::Binary() { return TIDEGATE_BINARY; }

TidegateProcess::TidegateProcess(std::vector<std::string> arguments, const Options& options,
                                 const std::filesystem::path& binary)
    : output_(options.output) {
  std::filesystem::remove(output_);
  static_cast<ChildProcess&>(*this) =
      ChildProcess(WithProgram(binary, std::move(arguments)), options);
}

std::string TidegateProcess::Output() const {
  std::string output = ReadFile(output_);
  if (killed_by() != 0) output += "ended by signal " + std::to_string(killed_by()) + '\n';
  return output;
}

int TidegateProcess::CountInOutput(std::string_view words) const {
  const std::string output = Output();
  int count = 0;
  for (std::size_t at = 0; (at = output.find(words, at)) != std::string::npos; ++at) ++count;
  return count;
}

int TidegateProcess::PortIfListening(std::string_view listener) const {
  const std::string output = Output();
  const std::size_t line = output.find(" info: " + std::string(listener));
  const std::size_t end = output.find('\n', line);
  if (line == std::string::npos || end == std::string::npos) return 0;
  constexpr std::string_view kHost = "://127.0.0.1:";
  const std::size_t at = output.find(kHost, line);
  int port = 0;
  if (at < end) std::from_chars(output.data() + at + kHost.size(), output.data() + end, port);
  return port;
}

int TidegateProcess::Port(std::string_view listener) {
  int port = 0;
  const bool ended = !WaitUntil([&] {
    port = PortIfListening(listener);
    return port != 0 || !alive();
  });
  if (ended || port == 0) {
    throw std::runtime_error("tidegate does not open `" + std::string(listener) + "`:\n" +
                             Output());
  }
  return port;
}

}  // namespace tidegate::test
