// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/dial.hpp"
#include "cli/keyring.hpp"

namespace tidegate::cli {

struct HttpQuestion {
  std::string method = "GET";
  std::string target;      ///< `/v1/status`, encoded.
  std::string body = {};   ///< JSON; sent unless the method is GET.
  std::string token = {};  ///< Sent as `Authorization: Bearer`, if there is one.
  bool changes = false;    ///< Without an answer it may have been done all the same.
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

/// The bytes of a question. `close`: the connection is for this one only.
[[nodiscard]] std::string RequestText(const ServerAddress& address, const HttpQuestion& question,
                                      bool close);

/// One question on a connection of its own. The Error says what did not work, and what to do; it is
/// kBadConfig where the command line must change, else kNetwork. REQUIRES: a keyring that was
/// loaded, if the address has TLS.
[[nodiscard]] Result<HttpAnswer> Ask(const ServerAddress& address, const HttpQuestion& question,
                                     const Patience& patience, const Keyring& keyring = {});

}  // namespace tidegate::cli
