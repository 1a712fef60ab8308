// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "gateway/behaviour/tls_side.hpp"
#include "redis/redis_server.hpp"
#include "support/files.hpp"

namespace tidegate::redis_test {

/// Authorities, certificates and keys in files, as redis-server and Tidegate read them.
class TlsFiles {
 public:
  using Validity = behaviour::Authority::Validity;

  /// Where a certificate and its key are.
  struct Pair {
    std::string certificate;
    std::string key;
  };

  /// The authority that everything here trusts, and one that nothing trusts.
  [[nodiscard]] const std::string& ca() const noexcept { return ca_; }
  [[nodiscard]] const std::string& other_ca() const noexcept { return other_ca_; }
  /// Signed by the trusted one.
  Pair Issue(const std::string& names = "IP:127.0.0.1", Validity validity = Validity::kNow);
  /// Signed by the other one.
  Pair IssueByOther();

  /// What a redis-server needs for it: without asking its clients for a certificate, or with.
  enum class Clients : bool { kAnybody, kWithCertificate };
  [[nodiscard]] std::vector<std::string> Arguments(const Pair& own,
                                                   Clients clients = Clients::kAnybody) const;
  /// The same for the configuration of a sentinel.
  [[nodiscard]] std::string Lines(const Pair& own) const;
  /// `tls: { ca: file:..., <more> }`
  [[nodiscard]] std::string StoreTls(const std::string& more = {}) const;
  /// `certificate: file:..., key: file:...`
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
