// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/behaviour/scripted_upstream.hpp"
#include "gateway/behaviour/tls_side.hpp"
#include "service/fixture.hpp"

namespace tidegate::service {

/// The four of them.
enum class Door : std::uint8_t { kApi, kAdmin, kGateway, kResp };
inline constexpr std::array kDoors{Door::kApi, Door::kAdmin, Door::kGateway, Door::kResp};
inline constexpr std::array kHttpDoors{Door::kApi, Door::kAdmin, Door::kGateway};

[[nodiscard]] std::string_view Name(Door door);
std::ostream& operator<<(std::ostream& out, Door door);
[[nodiscard]] ListenSpec& SpecOf(Config& config, Door door);
[[nodiscard]] net::Endpoint At(Service& service, Door door);

/// A certificate of Ours() for 127.0.0.1 and those DNS names, the first being its common name.
[[nodiscard]] ListenTls::Certificate PairFor(
    const std::vector<std::string>& names,
    behaviour::Authority::Key kind = behaviour::Authority::Key::kEc);
/// TLS with one certificate of that name.
[[nodiscard]] ListenTls TlsFor(const std::string& name = "test");
/// And with clients who show certificates of Ours().
[[nodiscard]] ListenTls TlsWithClients(ListenTls::Clients clients);

/// All four doors on free ports of loopback, with `per-key` (3/s, by x-api-key), `jobs` (leases)
/// and `visits` (by client_ip) that no request matches, and a route to that upstream.
[[nodiscard]] Config AllDoors(const std::string& upstream_url = "http://127.0.0.1:9",
                              std::string_view more_yaml = {});
/// All of them with TLS.
[[nodiscard]] Config AllDoorsTls(const ListenTls& tls,
                                 const std::string& upstream_url = "http://127.0.0.1:9",
                                 std::string_view more_yaml = {});

/// Whether a connection of these bytes is served: asks the door something, and sees an answer.
[[nodiscard]] bool Served(std::unique_ptr<Stream> stream, Door door);

/// A version 1 header from that address to this machine.
[[nodiscard]] std::string ProxyV1(std::string_view source);
/// A version 2 header; `::ffff:a.b.c.d` stays IPv6. kLocal: the proxy speaks for itself.
enum class ProxyCommand : bool { kLocal, kProxy };
[[nodiscard]] std::string ProxyV2(std::string_view source,
                                  ProxyCommand command = ProxyCommand::kProxy,
                                  std::string_view tlvs = {});

/// Whether it becomes true within kPatience.
using behaviour::Soon;

}  // namespace tidegate::service
