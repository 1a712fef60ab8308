// SPDX-License-Identifier: Apache-2.0
#include "store/redis/redirect.hpp"

#include "store/redis/host_port.hpp"

namespace tidegate::redis {
namespace {

/// The port is behind the last colon, since Redis writes IPv6 without brackets.
std::optional<Endpoint> ReadTarget(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = ReadPort(text.substr(colon + 1));
  if (!port) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.empty() || host == "?") return Endpoint{.port = *port};
  if (host.size() > 2 && host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  if (!IsHost(host) || host.find_first_of("[]") != std::string_view::npos) return std::nullopt;
  return Endpoint{.host = std::string(host), .port = *port};
}

}  // namespace

std::optional<Redirect> ReadRedirect(std::string_view error) {
  const bool moved = error.starts_with("MOVED ");
  if (!moved && !error.starts_with("ASK ")) return std::nullopt;
  error.remove_prefix(error.find(' ') + 1);
  const std::size_t space = error.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto slot = ReadWhole(error.substr(0, space));
  // A further word would end up in the host or the port, where no space may be.
  auto target = ReadTarget(error.substr(space + 1));
  if (!slot || *slot >= static_cast<std::int64_t>(kSlots) || !target) return std::nullopt;
  return Redirect{.kind = moved ? Redirect::Kind::kMoved : Redirect::Kind::kAsk,
                  .slot = static_cast<Slot>(*slot),
                  .to = *std::move(target)};
}

}  // namespace tidegate::redis
