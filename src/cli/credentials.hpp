// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "net/tls.hpp"
#include "tidegate/error.hpp"

namespace tidegate::cli {

/// Reads the caller's token from `file`, or else from the environment's TIDEGATE_TOKEN; empty if
/// there is none. A token is never an argument, because every user of the machine can read those,
/// and never part of a message.
[[nodiscard]] Result<std::string> ReadToken(const std::string& file);

/// The PEM files for TLS that the command line names.
struct TlsOptions {
  std::string ca = {};           ///< Empty: the environment's TIDEGATE_CA_FILE.
  std::string certificate = {};  ///< The caller's certificate and its chain; empty: none.
  std::string key = {};          ///< Empty: the key is in the file `certificate`.

  [[nodiscard]] bool named() const noexcept {
    return !ca.empty() || !certificate.empty() || !key.empty();
  }
};

/// The authorities that a command trusts, and its certificate. Servers are always verified.
struct TlsCredentials {
  std::shared_ptr<const net::TlsClient> client = nullptr;
  std::string ca_file = {};  ///< The trusted authorities, for messages; empty: the system's.

  /// Reads the files. The message names the wrong file and its option, but no content.
  [[nodiscard]] static Result<TlsCredentials> Load(const TlsOptions& files);
};

}  // namespace tidegate::cli
