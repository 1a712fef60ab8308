// SPDX-License-Identifier: Apache-2.0
#include "cli/demo_ports.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "core/refuse.hpp"
#include "net/endpoint.hpp"
#include "net/listener.hpp"

namespace tidegate::cli {
namespace {

struct DemoListener {
  ListenerId id;
  std::string_view name;
  std::string_view option;
  ListenSpec& spec;
  std::optional<std::uint16_t> port;
};

/// `127.0.0.1:8080` with another port.
std::string WithPort(const std::string& address, std::uint16_t port) {
  return address.substr(0, address.rfind(':') + 1) + std::to_string(port);
}

Result<void> CheckGiven(std::span<const DemoListener> all, const DemoListener& one) {
  const auto same = std::ranges::find_if(all, [&](const DemoListener& other) {
    return &other != &one && other.port && *other.port != 0 && other.port == one.port;
  });
  if (same != all.end()) {
    return Refuse(ErrorCode::kBadConfig, std::string(one.option) + " and " +
                                             std::string(same->option) + " are both " +
                                             std::to_string(*one.port) + ": name two ports");
  }
  const auto endpoint = net::Endpoint::Parse(WithPort(one.spec.address, *one.port));
  if (!endpoint) return std::unexpected(endpoint.error());
  if (const auto free = net::CheckFree(*endpoint); !free) {
    const std::string& message = free.error().message;
    return Refuse(free.error().code, message.substr(0, message.find(';')) +
                                         "; name another port with " + std::string(one.option) +
                                         ", or leave the option out to use a free one");
  }
  return {};
}

}  // namespace

Result<std::vector<MovedListener>> ChooseDemoPorts(const DemoPorts& ports, Config::Listen& listen) {
  const std::array<DemoListener, 4> all = {
      {{ListenerId::kGateway, "gateway", "--port", listen.gateway, ports.gateway},
       {ListenerId::kApi, "api", "--api-port", listen.api, ports.api},
       {ListenerId::kResp, "resp", "--resp-port", listen.resp, ports.resp},
       {ListenerId::kAdmin, "admin", "--admin-port", listen.admin, ports.admin}}};
  std::vector<MovedListener> moved;
  for (const DemoListener& one : all) {
    if (!one.port) continue;
    if (auto good = CheckGiven(all, one); !good) return std::unexpected(good.error());
  }
  for (const DemoListener& one : all) {
    if (one.port) {
      one.spec.address = WithPort(one.spec.address, *one.port);
      continue;
    }
    const auto usual = net::Endpoint::Parse(one.spec.address);
    if (!usual) return std::unexpected(usual.error());
    const bool given_away = std::ranges::any_of(
        all, [&](const DemoListener& other) { return other.port == usual->port(); });
    if (!given_away && net::CheckFree(*usual)) continue;
    moved.push_back({one.id, std::string(one.name), one.spec.address, std::string(one.option)});
    one.spec.address = WithPort(one.spec.address, 0);
  }
  return moved;
}

}  // namespace tidegate::cli
