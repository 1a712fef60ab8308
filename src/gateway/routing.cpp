// SPDX-License-Identifier: Apache-2.0
#include "gateway/routing.hpp"

#include <netdb.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <expected>
#include <system_error>
#include <thread>
#include <utility>

namespace tidegate {

namespace {

using net::SocketAddress;

std::string TextOf(const SocketAddress& address) {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  (void)getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.size, host,
                    sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  const bool six = address.storage.ss_family == AF_INET6;
  return (six ? "[" : "") + std::string(host) + (six ? "]:" : ":") + port;
}

std::string AuthorityOf(const UpstreamSpec::Target& target) {
  const bool six = target.host.find(':') != std::string::npos;
  std::string text = six ? "[" + target.host + "]" : target.host;
  if (target.port != (target.tls ? 443 : 80)) text += ":" + std::to_string(target.port);
  return text;
}

bool Same(const SocketAddress& a, const SocketAddress& b) noexcept {
  return a.size == b.size && std::memcmp(&a.storage, &b.storage, a.size) == 0;
}

std::shared_ptr<Member> MakeMember(const UpstreamSpec::Target& target,
                                   const SocketAddress& address) {
  auto member = std::make_shared<Member>();
  member->address = address;
  member->text = TextOf(address);
  member->host = target.host;
  member->authority = AuthorityOf(target);
  member->tls = target.tls;
  member->weight = target.weight;
  return member;
}

bool SameSettings(const Member& a, const Member& b) noexcept {
  return a.tls == b.tls && a.weight == b.weight && a.host == b.host && a.authority == b.authority;
}

constexpr std::chrono::seconds kPatience{2};

MatchIndex IndexOf(const Config& config) {
  std::vector<MatchSpec> specs;
  for (const RouteSpec& route : config.routes) specs.push_back(route.match);
  if (config.paths.ignore_case) std::ranges::for_each(specs, IgnorePathCase);
  return MatchIndex(specs);
}

std::shared_ptr<Upstream> FindUpstream(const Routing* routing, const std::string& name) {
  if (routing == nullptr) return nullptr;
  for (const auto& upstream : routing->upstreams()) {
    if (upstream->spec().name == name) return upstream;
  }
  return nullptr;
}

/// Returns an empty prefix for `/`, with which every path begins.
std::string_view WithoutRoot(std::string_view prefix) noexcept {
  return prefix == "/" ? std::string_view{} : prefix;
}

}  // namespace

Result<std::shared_ptr<Upstream>> Upstream::Make(const UpstreamSpec& spec, const Upstream* before) {
  std::shared_ptr<Upstream> upstream(new Upstream(spec));
  const bool tls = std::ranges::any_of(spec.targets, &UpstreamSpec::Target::tls);
  if (tls) {
    auto client = net::TlsClient::Make(spec.tls);
    if (!client) return std::unexpected(std::move(client.error()));
    upstream->tls_ = *std::move(client);
  }
  upstream->addresses_.resize(spec.targets.size());
  for (std::size_t i = 0; i < spec.targets.size(); ++i) {
    auto found = net::LookUp(spec.targets[i].host, spec.targets[i].port, net::Lookup::kNumber);
    if (found.addresses.empty()) {
      upstream->names_.push_back(i);
    } else {
      upstream->addresses_[i] = std::move(found.addresses);
    }
  }
  const auto known = before == nullptr ? nullptr : before->members();
  const bool same_checks = before != nullptr && before->spec().health == spec.health;
  upstream->Rebuild(known.get(), same_checks ? Keep::kMembers : Keep::kRecord);
  return upstream;
}

void Upstream::Rebuild(const Members* before, Keep keep) {
  auto members = std::make_shared<Members>();
  for (std::size_t i = 0; i < spec_.targets.size(); ++i) {
    for (const SocketAddress& address : addresses_[i]) {
      auto member = MakeMember(spec_.targets[i], address);
      const auto has = [&](const std::shared_ptr<Member>& other) {
        return Same(other->address, address) && other->authority == member->authority &&
               other->tls == member->tls;
      };
      if (std::ranges::any_of(*members, has)) continue;
      if (before != nullptr) {
        if (const auto old = std::ranges::find_if(*before, has); old != before->end()) {
          if (keep == Keep::kMembers && SameSettings(**old, *member)) {
            member = *old;
          } else {
            // Keeps all state but the health, which the new checks will determine.
            member->failures = (*old)->failures.load();
            member->ejections = (*old)->ejections.load();
            member->ejected_until = (*old)->ejected_until.load();
          }
        }
      }
      members->push_back(std::move(member));
    }
  }
  members_ = std::move(members);
  version_.fetch_add(1, std::memory_order_release);
}

void Upstream::SetAddresses(std::size_t target, const std::vector<SocketAddress>& addresses) {
  if (addresses.empty()) return;
  const std::lock_guard lock(mutex_);
  // Name servers shuffle addresses, so another order is not a change.
  auto& known = addresses_[target];
  const bool same = known.size() == addresses.size() &&
                    std::ranges::all_of(addresses, [&known](const SocketAddress& address) {
                      return std::ranges::any_of(
                          known, [&](const SocketAddress& one) { return Same(one, address); });
                    });
  if (same) return;
  known = addresses;
  const auto before = members_;
  Rebuild(before.get(), Keep::kMembers);
}

void ResolveNames(const Upstreams& upstreams, std::chrono::milliseconds patience) {
  struct Progress {
    std::mutex mutex;
    std::condition_variable done;
    std::size_t open = 0;
  };
  // Threads that still wait for a name server after `patience` outlive this call.
  const auto progress = std::make_shared<Progress>();
  for (const auto& upstream : upstreams) {
    for (const std::size_t target : upstream->names()) {
      {
        const std::lock_guard lock(progress->mutex);
        ++progress->open;
      }
      const auto look = [progress, upstream, target] {
        const auto& spec = upstream->spec().targets[target];
        upstream->SetAddresses(target,
                               net::LookUp(spec.host, spec.port, net::Lookup::kName).addresses);
        const std::lock_guard lock(progress->mutex);
        --progress->open;
        progress->done.notify_all();
      };
      try {
        std::thread(look).detach();
      } catch (const std::system_error&) {
        look();  // On this thread, because no other could be started.
      }
    }
  }
  std::unique_lock lock(progress->mutex);
  progress->done.wait_for(lock, patience, [&] { return progress->open == 0; });
}

std::optional<std::string_view> Route::Rewrite(std::string_view path, const RequestView& request,
                                               std::pmr::memory_resource& memory) const {
  if (!spec.rewrite) return path;
  const std::string_view prefix = WithoutRoot(spec.rewrite->prefix);
  const std::string_view with = WithoutRoot(spec.rewrite->with);
  const auto begins = [&](std::string_view text) {
    const std::string_view begin = text.substr(0, prefix.size());
    return (ignore_case ? EqualsIgnoreCase(begin, prefix) : begin == prefix) &&
           (text.size() == prefix.size() || text[prefix.size()] == '/');  // Whole segments only.
  };
  std::string_view rest = path;
  if (begins(path)) {
    rest.remove_prefix(prefix.size());
  } else if (!request.PathHolds(Readings::kAny, begins)) {
    return path;
  } else if (request.has_encoded_separator || path.find("//") != std::string_view::npos) {
    return std::nullopt;
  } else {
    // The prefix is spelt in another way in `path`, such as `/v1;x`, with the same number of
    // segments.
    for (auto count = std::ranges::count(prefix, '/'); count > 0; --count) {
      rest.remove_prefix(std::min(rest.find('/', 1), rest.size()));
    }
  }
  if (rest.empty() && with.empty()) return "/";
  if (rest.empty()) return with;
  if (with.empty()) return rest;
  auto* const text = static_cast<char*>(memory.allocate(with.size() + rest.size(), 1));
  std::memcpy(text, with.data(), with.size());
  std::memcpy(text + with.size(), rest.data(), rest.size());
  return std::string_view{text, with.size() + rest.size()};
}

Routing::Routing(const Config& config) : gateway_(config.gateway), index_(IndexOf(config)) {}

std::shared_ptr<const Routing> Routing::Make(const Config& config, const Routing* before,
                                             RuleSlots& routes, RuleSlots& upstreams,
                                             Problems& problems) {
  std::shared_ptr<Routing> routing(new Routing(config));
  Upstreams fresh;
  for (const UpstreamSpec& spec : config.upstreams) {
    const auto known = FindUpstream(before, spec.name);
    routing->slots_.push_back(upstreams.SlotOf(spec.name));
    if (known != nullptr && known->spec() == spec) {
      routing->upstreams_.push_back(known);
      continue;
    }
    auto made = Upstream::Make(spec, known.get());
    if (!made) {
      problems.push_back(
          {Problem::Severity::kError, {}, "upstreams." + spec.name, made.error().message});
      continue;
    }
    routing->upstreams_.push_back(*made);
    if (!(*made)->names().empty()) fresh.push_back(*made);
  }
  if (routing->upstreams_.size() != config.upstreams.size()) return nullptr;
  if (!fresh.empty()) ResolveNames(fresh, kPatience);
  for (const RouteSpec& spec : config.routes) {
    const auto found = std::ranges::find(config.upstreams, spec.upstream, &UpstreamSpec::name);
    Route route{.spec = spec,
                .upstream = static_cast<std::size_t>(found - config.upstreams.begin()),
                .slot = routes.SlotOf(spec.id),
                .body_bytes = spec.body_bytes.value_or(config.gateway.body_bytes),
                .response_timeout = spec.response_timeout.value_or(found->response_timeout),
                .encoded_slashes = spec.encoded_slashes.value_or(config.paths.encoded_slashes),
                .ignore_case = config.paths.ignore_case};
    routing->routes_.push_back(std::move(route));
  }
  return routing;
}

const Route* Routing::Find(const RequestView& request) const {
  std::array<std::uint32_t, 64> found;
  const std::size_t count = index_.Find(request, found);
  if (count == 0) return nullptr;
  if (count <= found.size()) return &routes_[found[0]];
  std::vector<std::uint32_t> all(count);
  (void)index_.Find(request, all);
  return &routes_[all[0]];
}

}  // namespace tidegate
