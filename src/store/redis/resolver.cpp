// SPDX-License-Identifier: Apache-2.0
#include "store/redis/resolver.hpp"

#include <netdb.h>

#include <cstring>
#include <thread>
#include <utility>

namespace tidegate::redis {
namespace {

struct Found {
  std::vector<Address> addresses;
  std::string problem;
};

Found LookUp(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  Found found;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    found.problem = "the name `" + host + "` leads nowhere: " + gai_strerror(error);
    return found;
  }
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    Address address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.size = info->ai_addrlen;
    found.addresses.push_back(address);
  }
  freeaddrinfo(list);
  return found;
}

}  // namespace

Resolver::Resolver(net::Reactor& reactor) : shared_(std::make_shared<Shared>()) {
  shared_->reactor = &reactor;
}

Resolver::~Resolver() {
  const std::lock_guard lock(shared_->mutex);
  shared_->reactor = nullptr;
}

void Resolver::Forget() noexcept {
  const std::lock_guard lock(shared_->mutex);
  ++shared_->wanted;
}

void Resolver::Resolve(const std::string& host, std::uint16_t port, Done done) {
  Found numeric = LookUp(host, port, AI_NUMERICHOST | AI_NUMERICSERV);
  if (!numeric.addresses.empty()) return done(std::move(numeric.addresses), {});
  std::uint64_t mine = 0;
  {
    const std::lock_guard lock(shared_->mutex);
    mine = ++shared_->wanted;
  }
  std::thread([shared = shared_, host, port, mine, done = std::move(done)]() mutable {
    Found found = LookUp(host, port, AI_NUMERICSERV);
    const std::lock_guard lock(shared->mutex);
    if (shared->reactor == nullptr) return;
    shared->reactor->Post([shared, mine, done = std::move(done), found = std::move(found)] {
      {
        const std::lock_guard again(shared->mutex);
        if (shared->reactor == nullptr || shared->wanted != mine) return;
      }
      done(found.addresses, found.problem);
    });
  }).detach();
}

}  // namespace tidegate::redis
