// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "net/tls_client.hpp"
#include "tidegate/error.hpp"

namespace tidegate::cli {

/// The files, in PEM form, that a command was given for TLS.
struct TlsFiles {
  std::string ca = {};           ///< Empty: the environment's TIDEGATE_CA_FILE.
  std::string certificate = {};  ///< The caller's own, with its chain; empty: none.
  std::string key = {};          ///< Empty: in the same file.

  [[nodiscard]] bool named() const noexcept {
    return !ca.empty() || !certificate.empty() || !key.empty();
  }
};

/// Whom a command believes over TLS, and what it shows of itself. There is none that believes
/// everybody.
struct Keyring {
  std::shared_ptr<const net::TlsClient> client = nullptr;
  std::string ca_file = {};  ///< Whom it believes, for messages; empty: the system's authorities.

  /// Reads the files. The message names the one that is wrong and its option, and shows nothing
  /// of what is in it.
  [[nodiscard]] static Result<Keyring> Load(const TlsFiles& files);
};

}  // namespace tidegate::cli
