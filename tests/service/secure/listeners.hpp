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

/// A certificate of Ours() for 127.0.0.1 and those DNS names, the first being its common name.
[[nodiscard]] ListenTls::Certificate PairFor(
    const std::vector<std::string>& names,
    behaviour::Authority::Key kind = behaviour::Authority::Key::kEc);
/// TLS with one certificate of that name.
[[nodiscard]] ListenTls TlsFor(const std::string& name = "test");
/// And with clients who show certificates of Ours().
[[nodiscard]] ListenTls TlsWithClients(ListenTls::Clients clients);

/// All four listeners on free ports of loopback, with `per-key` (3/s, by x-api-key), `jobs`
/// (leases) and `visits` (by client_ip) that no request matches, and a route to that upstream.
[[nodiscard]] Config AllListeners(const std::string& upstream_url = "http://127.0.0.1:9",
                                  std::string_view more_yaml = {});
/// All of them with TLS.
[[nodiscard]] Config AllListenersTls(const ListenTls& tls,
                                     const std::string& upstream_url = "http://127.0.0.1:9",
                                     std::string_view more_yaml = {});

/// Whether a connection of these bytes is served: asks the listener something, and sees an answer.
[[nodiscard]] bool Served(std::unique_ptr<test::Stream> stream, ListenerId listener);

/// A version 1 header from that address to this machine.
[[nodiscard]] std::string ProxyV1(std::string_view source);
/// A version 2 header; `::ffff:a.b.c.d` stays IPv6. kLocal: the proxy speaks for itself.
enum class ProxyCommand : bool { kLocal, kProxy };
[[nodiscard]] std::string ProxyV2(std::string_view source,
                                  ProxyCommand command = ProxyCommand::kProxy,
                                  std::string_view tlvs = {});

}  // namespace service
}  // namespace tidegate
