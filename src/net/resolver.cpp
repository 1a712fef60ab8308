// SPDX-License-Identifier: Apache-2.0
#include "net/resolver.hpp"

#include <netdb.h>

#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

namespace tidegate::net {

Found LookUp(const std::string& host, std::uint16_t port, Lookup lookup) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (lookup == Lookup::kNumber ? AI_NUMERICHOST : 0);
  addrinfo* list = nullptr;
  Found found;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    found.problem = "cannot resolve `" + host + "`: " + gai_strerror(error);
    return found;
  }
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.size = info->ai_addrlen;
    found.addresses.push_back(address);
  }
  freeaddrinfo(list);
  return found;
}

Resolver::Resolver(Reactor& reactor) : shared_(std::make_shared<Shared>()) {
  shared_->owner = this;
  shared_->reactor = &reactor;
}

Resolver::~Resolver() {
  const std::lock_guard lock(shared_->mutex);
  shared_->owner = nullptr;
}

void Resolver::Resolve(const std::string& host, std::uint16_t port, Done done) {
  Found numeric = LookUp(host, port, Lookup::kNumber);
  if (!numeric.addresses.empty()) return done(std::move(numeric.addresses), {});
  if (kept_) {
    const Found kept = *std::exchange(kept_, std::nullopt);
    return done(kept.addresses, kept.problem);
  }
  done_ = std::move(done);
  if (looking_) return;
  looking_ = true;
  const auto look = [shared = shared_, host, port] {
    Found found = LookUp(host, port, Lookup::kName);
    const std::lock_guard lock(shared->mutex);
    if (shared->owner == nullptr) return;
    shared->reactor->Post([shared, found = std::move(found)]() mutable {
      Resolver* owner = nullptr;
      {
        const std::lock_guard again(shared->mutex);
        owner = shared->owner;
      }
      // The resolver is deleted on this thread only, so not during the call.
      if (owner != nullptr) owner->OnFound(std::move(found));
    });
  };
  try {
    std::thread(look).detach();
  } catch (const std::system_error&) {
    OnFound({{}, "cannot resolve `" + host + "`: no thread could be started"});
  }
}

}  // namespace tidegate::net
