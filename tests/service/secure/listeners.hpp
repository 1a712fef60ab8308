// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "decision/snapshot.hpp"
#include "gateway/behaviour/scripted_upstream.hpp"
#include "gateway/behaviour/tls_side.hpp"
#include "service/fixture.hpp"

namespace tidegate {

std::ostream& operator<<(std::ostream& out, ListenerId listener);

namespace service {

inline constexpr std::array kListenerIds{ListenerId::kApi, ListenerId::kAdmin, ListenerId::kGateway,
                                         ListenerId::kResp};
inline constexpr std::array kHttpListeners{ListenerId::kApi, ListenerId::kAdmin,
                                           ListenerId::kGateway};

[[nodiscard]] std::string_view Name(ListenerId listener);
[[nodiscard]] ListenSpec& SpecOf(Config& config, ListenerId listener);
[[nodiscard]] net::Endpoint At(Service& service, ListenerId listener);

/// Returns a certificate of Ours() for 127.0.0.1 and these DNS names; the first name is its common
/// name.
[[nodiscard]] ListenTls::Certificate PairFor(
    const std::vector<std::string>& names,
    behaviour::Authority::Key kind = behaviour::Authority::Key::kEc);
/// Returns TLS settings with one certificate for that name.
[[nodiscard]] ListenTls TlsFor(const std::string& name = "test");
/// Returns the settings of TlsFor() with client certificates, which Ours() must have issued.
[[nodiscard]] ListenTls TlsWithClients(ListenTls::Clients clients);

/// Returns a configuration with all four listeners on free ports of loopback, a route to
/// `upstream_url`, and three rules: `per-key` (3/s by x-api-key) and `jobs` (leases), which match
/// no request, and `visits` (3/m by client_ip).
[[nodiscard]] Config AllListeners(const std::string& upstream_url = "http://127.0.0.1:9",
                                  std::string_view more_yaml = {});
/// Returns the same configuration with TLS on all listeners.
[[nodiscard]] Config AllListenersTls(const ListenTls& tls,
                                     const std::string& upstream_url = "http://127.0.0.1:9",
                                     std::string_view more_yaml = {});

/// Sends a request on the connection and returns whether the listener answers it.
[[nodiscard]] bool Served(std::unique_ptr<test::Stream> stream, ListenerId listener);

/// Returns a version 1 header that announces a connection from `source` to this machine.
[[nodiscard]] std::string ProxyV1(std::string_view source);
/// Returns a version 2 header that announces `source`; `::ffff:a.b.c.d` stays IPv6. kLocal: the
/// proxy opened the connection itself, so the header announces no client.
enum class ProxyCommand : bool { kLocal, kProxy };
[[nodiscard]] std::string ProxyV2(std::string_view source,
                                  ProxyCommand command = ProxyCommand::kProxy,
                                  std::string_view tlvs = {});

}  // namespace service
}  // namespace tidegate
