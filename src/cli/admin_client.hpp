// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console.hpp"
#include "cli/http_ask.hpp"
#include "cli/members.hpp"

namespace tidegate::cli {

/// Which server a command asks, and how.
struct AskOptions {
  std::string server = {};      ///< HOST:PORT, https://HOST:PORT; empty: as TIDEGATE_ADMIN or
                                ///< TIDEGATE_SERVER says, else this machine.
  std::string token_file = {};  ///< Else the environment's TIDEGATE_TOKEN.
  TlsFiles tls = {};            ///< Only for https.
  Micros timeout = std::chrono::seconds{2};
  bool json = false;  ///< Print what came.
};

/// What to do about an objection, where the command knows more about it than the server.
struct Hint {
  int status;
  std::string text;
};

struct AdminQuestion {
  std::string target;                            ///< `/v1/status`
  std::optional<boost::json::object> body = {};  ///< Sent with POST; else it is GET.
  bool changes = false;  ///< Without an answer it may have been done all the same.
  std::vector<Hint> hints = {};
};

/// What the server said.
struct AdminAnswer {
  int status = 0;
  std::string text = {};  ///< As it came.
  boost::json::object object = {};
};

/// Why there is none.
struct AskFailure {
  int exit;               ///< kUsage or kNoAnswer.
  std::string message;    ///< For people, fit for a terminal.
  std::string text = {};  ///< The problem, where the server sent one: JSON.
};

template <class T>
using Asked = std::expected<T, AskFailure>;

/// One server, asked again and again. Each question has a connection of its own.
class AdminClient {
 public:
  /// `default_port` and `option` (`--admin`): of the door that is asked. Reads the token, and what
  /// TLS needs.
  [[nodiscard]] static Asked<AdminClient> Make(const AskOptions& options,
                                               std::uint16_t default_port = kAdminPort,
                                               std::string option = "--admin");

  [[nodiscard]] Asked<AdminAnswer> Ask(const AdminQuestion& question) const;

  /// Once `fd` is readable, whatever is under way ends.
  void CancelBy(int fd) noexcept { patience_.cancel = fd; }
  [[nodiscard]] const ServerAddress& address() const noexcept { return address_; }
  [[nodiscard]] const std::string& token() const noexcept { return token_; }
  /// What the caller should know before anything is asked; empty: nothing. Looks a name up.
  [[nodiscard]] std::string Warning() const;

 private:
  AdminClient() = default;

  ServerAddress address_;
  std::string token_;
  Keyring keyring_;
  Patience patience_;
};

/// Prints the client's warning, if there is one; once, before anything is asked.
void Warn(std::string_view command, const AdminClient& client, const Console& console);

/// What most commands are: one question, and its answer printed, as it came with --json.
/// `command`: for messages. Returns an exit code.
[[nodiscard]] int AskAndPrint(std::string_view command, const AskOptions& options,
                              const AdminQuestion& question, const Console& console,
                              const std::function<void(Members)>& print);
/// Says so where a change was made, but could not be written down for the fleet.
void WarnIfNotRecorded(const Members& answer, const Console& console);
/// As it came with --json. Returns kOk.
int PrintAnswer(const AdminAnswer& answer, const AskOptions& options, const Console& console,
                const std::function<void(Members)>& print);
/// Prints a failure; with --json the server's problem too. Returns its exit code.
[[nodiscard]] int Tell(std::string_view command, const AskFailure& failure, bool json,
                       const Console& console);

}  // namespace tidegate::cli
