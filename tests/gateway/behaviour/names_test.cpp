// SPDX-License-Identifier: Apache-2.0
// Targets with hostnames. This file replaces getaddrinfo(): each name resolves to 127.0.0.1, once
// for each port that the test has set.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "gateway/behaviour/gateway_fixture.hpp"
#include "support/wait.hpp"

namespace {

std::mutex mutex;                  // NOLINT
std::vector<std::uint16_t> ports;  // NOLINT: guarded by `mutex`. Empty: resolving fails.

void ResolveTo(std::vector<std::uint16_t> to) {
  const std::lock_guard lock(mutex);
  ports = std::move(to);
}

addrinfo* AddressOf(in_addr number, std::uint16_t port, addrinfo* next) {
  auto* const info = static_cast<addrinfo*>(std::calloc(1, sizeof(addrinfo)));
  auto* const address = static_cast<sockaddr_in*>(std::calloc(1, sizeof(sockaddr_in)));
  address->sin_family = AF_INET;
  address->sin_port = htons(port);
  address->sin_addr = number;
  info->ai_family = AF_INET;
  info->ai_socktype = SOCK_STREAM;
  info->ai_addr = reinterpret_cast<sockaddr*>(address);
  info->ai_addrlen = sizeof(sockaddr_in);
  info->ai_next = next;
  return info;
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** list) {
  in_addr number{};
  *list = nullptr;
  if (inet_pton(AF_INET, host, &number) == 1) {
    const auto wanted = static_cast<std::uint16_t>(std::strtol(port, nullptr, 10));
    *list = AddressOf(number, wanted, nullptr);
    return 0;
  }
  if ((hints->ai_flags & AI_NUMERICHOST) != 0) return EAI_NONAME;
  inet_pton(AF_INET, "127.0.0.1", &number);
  const std::lock_guard lock(mutex);
  for (const std::uint16_t one : ports) *list = AddressOf(number, one, *list);
  return *list == nullptr ? EAI_AGAIN : 0;
}
extern "C" void freeaddrinfo(addrinfo* list) {
  while (list != nullptr) {
    addrinfo* const next = list->ai_next;
    std::free(list->ai_addr);
    std::free(list);
    list = next;
  }
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace tidegate::behaviour {
namespace {

TEST(TargetHostnameTest, FollowsDnsChangesWhileServing) {
  ScriptedUpstream one(ScriptedUpstream::Ok("one"));
  ScriptedUpstream two(ScriptedUpstream::Ok("two"));
  ResolveTo({one.port()});
  Gate gate(Routed("http://moves.example", "resolve: 1s"));
  Client client(gate.at());
  EXPECT_EQ(client.Get("/").body, "one");
  ResolveTo({two.port()});
  EXPECT_TRUE(test::WaitUntil([&] { return client.Get("/").body == "two"; }));
  EXPECT_EQ(one.open(), 0) << "a connection to a removed address is still open";
  ResolveTo({one.port(), two.port()});
  EXPECT_TRUE(test::WaitUntil([&] { return client.Get("/").body == "one"; }))
      << "the added address receives no request";
  EXPECT_EQ(client.Get("/").body, "two");
}

TEST(TargetHostnameTest, KeepsAddressesWhenDnsFails) {
  ScriptedUpstream one(ScriptedUpstream::Ok("one"));
  ResolveTo({one.port()});
  Gate gate(Routed("http://moves.example", "resolve: 1s"));
  EXPECT_EQ(gate.Get("/").body, "one");
  ResolveTo({});
  // The loop lasts longer than the interval of 1 s after which the gateway resolves the name again.
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{1300};
  while (std::chrono::steady_clock::now() < until) ASSERT_EQ(gate.Get("/").body, "one");
}

TEST(TargetHostnameTest, ServesOnceUnresolvedNameResolves) {
  ScriptedUpstream one(ScriptedUpstream::Ok("one"));
  ResolveTo({});
  Gate gate(Routed("http://late.example", "resolve: 1s"));
  EXPECT_EQ(gate.Get("/").status, 503);
  ResolveTo({one.port()});
  EXPECT_TRUE(test::WaitUntil([&] { return gate.Get("/").body == "one"; }));
}

}  // namespace
}  // namespace tidegate::behaviour
