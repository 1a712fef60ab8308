// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gateway/member.hpp"
#include "net/http1_field_lines.hpp"
#include "net/tls_client.hpp"
#include "rules/gateway_spec.hpp"
#include "tidegate/error.hpp"

namespace tidegate {

/// The servers behind one name, as all reactors see them. Thread-safe. Lives over reloads that do
/// not change it, with its members' health.
class Upstream {
 public:
  /// Addresses that are numbers are there at once, names after SetAddresses. `before`: the
  /// upstream of that name so far; members that it has too keep how they fare.
  [[nodiscard]] static Result<std::shared_ptr<Upstream>> Make(const UpstreamSpec& spec,
                                                              const Upstream* before);

  [[nodiscard]] const UpstreamSpec& spec() const noexcept { return spec_; }
  /// The line ends that are accepted in responses.
  [[nodiscard]] net::http1::LineEnd line_end() const noexcept {
    return spec_.accept_bare_lf ? net::http1::LineEnd::kCrlfOrLf : net::http1::LineEnd::kCrlf;
  }
  [[nodiscard]] const net::TlsClient* tls() const noexcept { return tls_.get(); }
  /// What TLS must find in the certificate of `member`.
  [[nodiscard]] const std::string& ServerName(const Member& member) const noexcept {
    return spec_.tls.server_name.empty() ? member.host : spec_.tls.server_name;
  }

  /// Grows whenever members come or go.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::shared_ptr<const Members> members() const;

  /// The places in spec().targets that are names.
  [[nodiscard]] const std::vector<std::size_t>& names() const noexcept { return names_; }
  /// What a name leads to now. Nothing: what it led to before is kept, which is more likely to
  /// work.
  void SetAddresses(std::size_t target, const std::vector<net::SocketAddress>& addresses);

 private:
  explicit Upstream(const UpstreamSpec& spec) : spec_(spec) {}
  /// Of members that `before` has too: themselves, or what is known of them but their health.
  enum class Keep : std::uint8_t { kMembers, kRecord };
  void Rebuild(const Members* before, Keep keep);

  const UpstreamSpec spec_;
  std::shared_ptr<const net::TlsClient> tls_;
  std::vector<std::size_t> names_;
  mutable std::mutex mutex_;
  std::vector<std::vector<net::SocketAddress>> addresses_;  ///< By target. Guarded by mutex_.
  std::shared_ptr<const Members> members_;                  ///< Guarded by mutex_.
  std::atomic<std::uint64_t> version_{0};
};

/// All upstreams of a configuration, in its order.
using Upstreams = std::vector<std::shared_ptr<Upstream>>;

/// Looks the names of all of them up, at the same time, and waits until it is done or `patience` is
/// over. Blocks: not for a reactor.
void ResolveNames(const Upstreams& upstreams, std::chrono::milliseconds patience);

}  // namespace tidegate
