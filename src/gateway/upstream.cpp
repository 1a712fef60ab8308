// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream.hpp"

#include <netdb.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
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

/// What is known of one that is replaced because its settings changed. Its health is for the new
/// checks to find; without any it is what the traffic says.
void TakeOver(const Member& from, Member& to) {
  to.failures = from.failures.load();
  to.ejections = from.ejections.load();
  to.ejected_until = from.ejected_until.load();
}

bool SameSettings(const Member& a, const Member& b) noexcept {
  return a.tls == b.tls && a.weight == b.weight && a.host == b.host && a.authority == b.authority;
}

}  // namespace

Result<std::shared_ptr<Upstream>> Upstream::Make(const UpstreamSpec& spec, const Upstream* before) {
  std::shared_ptr<Upstream> upstream(new Upstream(spec));
  const bool tls = std::ranges::any_of(spec.targets, &UpstreamSpec::Target::tls);
  if (tls) {
    auto client = net::TlsClient::Make({.ca_pem = spec.tls.ca_pem,
                                        .certificate_pem = spec.tls.certificate_pem,
                                        .key_pem = spec.tls.key_pem,
                                        .verify = spec.tls.verify});
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

std::shared_ptr<const Members> Upstream::members() const {
  const std::lock_guard lock(mutex_);
  return members_;
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
            TakeOver(**old, *member);
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
  // Name servers shuffle: the order is no change.
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
  // Threads that are still waiting for a name server when the patience is over outlive this call.
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
        look();  // Without a thread, in turn.
      }
    }
  }
  std::unique_lock lock(progress->mutex);
  progress->done.wait_for(lock, patience, [&] { return progress->open == 0; });
}

}  // namespace tidegate
