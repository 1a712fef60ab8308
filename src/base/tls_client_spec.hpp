// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tidegate {

/// TLS of a connection that this process opens: which server to trust, and its own certificate.
struct TlsClientSpec {
  std::string ca_pem = {};  ///< The trusted authorities; empty: those of the system.
  /// The certificate of this process with its chain; empty: none.
  std::string certificate_pem = {};
  std::string key_pem = {};
  /// The name that the server's certificate must have; empty: the host that is connected to.
  std::string server_name = {};
  bool verify = true;  ///< False: any server is trusted.
  friend bool operator==(const TlsClientSpec&, const TlsClientSpec&) = default;
};

}  // namespace tidegate
