// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "gateway/behaviour/tls_side.hpp"
#include "redis/redis_server.hpp"
#include "support/files.hpp"

namespace tidegate::redis_test {

/// Certificate authorities, certificates and keys in files, as redis-server and Tidegate read them.
class TlsFiles {
 public:
  using Validity = behaviour::Authority::Validity;

  /// Paths of a certificate and its key.
  struct Pair {
    std::string certificate;
    std::string key;
  };

  /// Certificate of the authority that all servers and clients of the tests trust; other_ca() is of
  /// an authority that none of them trusts.
  [[nodiscard]] const std::string& ca() const noexcept { return ca_; }
  [[nodiscard]] const std::string& other_ca() const noexcept { return other_ca_; }
  /// Issues a certificate that is signed by the trusted authority.
  Pair Issue(const std::string& names = "IP:127.0.0.1", Validity validity = Validity::kNow);
  /// Issues a certificate that is signed by the untrusted authority.
  Pair IssueByOther();

  /// Arguments() returns the TLS arguments of a redis-server that accepts any client, or only
  /// clients with a certificate.
  enum class Clients : bool { kAnybody, kWithCertificate };
  [[nodiscard]] std::vector<std::string> Arguments(const Pair& own,
                                                   Clients clients = Clients::kAnybody) const;
  /// Returns the same settings as lines for the configuration of a sentinel.
  [[nodiscard]] std::string Lines(const Pair& own) const;
  /// Returns the setting `tls: { ca: file:..., <more> }` of the store.
  [[nodiscard]] std::string StoreTls(const std::string& more = {}) const;
  /// Returns the settings `certificate: file:..., key: file:...`.
  [[nodiscard]] static std::string Own(const Pair& pair);

 private:
  std::string Write(const std::string& text);
  Pair Write(const behaviour::Credentials& credentials);

  test::TemporaryFolder folder_;
  int files_ = 0;
  behaviour::Authority authority_{"trusted"};
  behaviour::Authority other_{"other"};
  std::string ca_ = Write(authority_.pem());
  std::string other_ca_ = Write(other_.pem());
};

}  // namespace tidegate::redis_test
