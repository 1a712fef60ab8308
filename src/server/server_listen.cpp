// SPDX-License-Identifier: Apache-2.0
// The server's doors: where they listen, what they show, whom they believe and ask.
#include <limits>
#include <utility>

#include "net/http_listener.hpp"
#include "server/server.hpp"

namespace tidegate {
namespace {

Problem ProblemOf(const Doorway& doorway, std::string message) {
  return {Problem::Severity::kError, {}, "listen." + doorway.name(), std::move(message)};
}

}  // namespace

Result<void> Server::Listen() {
  const net::Listener::Options options{.limits = {.header_bytes = config_.limits.header_bytes,
                                                  .header_count = config_.limits.header_count,
                                                  .body_bytes = config_.limits.body_bytes},
                                       .max_connections = config_.limits.connections};
  net::Listener::Options streaming = options;
  // Bodies stream: the routes say how long they may be.
  streaming.limits.body_bytes = std::numeric_limits<std::size_t>::max();
  using Made = std::unique_ptr<net::Listener>;
  const auto open = [&](Doorway& doorway, std::size_t reactors, const net::Listener::Options& with,
                        const Doorway::MakeListener& make) -> Result<void> {
    if (doorway.off()) return {};
    return doorway.Open(reactors, with, make);
  };
  if (auto opened = open(api_, workers_.size(), options,
                         [&](std::size_t i, net::Descriptor socket, const auto& with) -> Made {
                           return std::make_unique<net::HttpListener>(
                               workers_[i]->reactor, std::move(socket), workers_[i]->api, with);
                         });
      !opened) {
    return opened;
  }
  if (auto opened = open(gateway_, workers_.size(), streaming,
                         [&](std::size_t i, net::Descriptor socket, const auto& with) -> Made {
                           return std::make_unique<GatewayListener>(workers_[i]->reactor,
                                                                    std::move(socket),
                                                                    *workers_[i]->gateway, with);
                         });
      !opened) {
    return opened;
  }
  if (auto opened = open(resp_, workers_.size(), options,
                         [&](std::size_t i, net::Descriptor socket, const auto& with) -> Made {
                           return std::make_unique<RespListener>(
                               workers_[i]->reactor, std::move(socket), *workers_[i]->resp, with);
                         });
      !opened) {
    return opened;
  }
  if (auto opened = open(admin_, 1, options,
                         [&](std::size_t i, net::Descriptor socket, const auto& with) -> Made {
                           return std::make_unique<net::HttpListener>(
                               workers_[i]->reactor, std::move(socket), *admin_door_, with);
                         });
      !opened) {
    return opened;
  }
  open_listeners_ =
      api_.listeners().size() + gateway_.listeners().size() + resp_.listeners().size();
  return {};
}

net::Listener::Trusts Server::TrustsOf(const Policy& policy) {
  return [rules = policy.rules](const net::Peer& peer) {
    return rules->client_policy().Trusts(Address(peer.bytes));
  };
}

std::optional<Server::Secrets> Server::MakeSecrets(const Config& config, Problems& problems) const {
  Secrets secrets;
  const auto add = [&](const Doorway& doorway, const ListenSpec& spec) {
    // Whether there is TLS at all is a matter of a restart.
    if (doorway.off() || !doorway.spec().tls || !spec.tls) return secrets.emplace_back(), true;
    auto made = doorway.MakeTls(spec);
    if (!made) {
      problems.push_back(ProblemOf(doorway, "tls: " + made.error().message));
      return false;
    }
    secrets.push_back(*std::move(made));
    return true;
  };
  const Config::Listen& listen = config.listen;
  if (add(api_, listen.api) && add(admin_, listen.admin) && add(gateway_, listen.gateway) &&
      add(resp_, listen.resp)) {
    return secrets;
  }
  return std::nullopt;
}

/// The doors stay where they are, but tokens are taken over at once: what shall guard a door
/// instead may be something that needs a restart.
bool Server::KeepsGuards(const Config& config, Problems& problems) const {
  const Tokens before(in_force_.access.tokens);
  const Tokens now(config.access.tokens);
  bool kept = true;
  const auto check = [&](const Doorway& doorway, ListenSpec Config::Listen::*door) {
    // Where it is as the configuration wants it, that is what it wants, whatever it is.
    if (doorway.off() || doorway.Fits(config.listen.*door) ||
        !doorway.AdmissionWith(in_force_.listen.*door).Required(before) ||
        doorway.AdmissionWith(config.listen.*door).Required(now)) {
      return;
    }
    problems.push_back(ProblemOf(
        doorway,
        "this door asks who calls, and would not any more: what it asked for is gone from the "
        "configuration, and a door is moved, or asks for something else, only by a restart"));
    kept = false;
  };
  check(api_, &Config::Listen::api);
  check(admin_, &Config::Listen::admin);
  check(resp_, &Config::Listen::resp);
  return kept;
}

}  // namespace tidegate
