// SPDX-License-Identifier: Apache-2.0
// Redis hosts that are configured by name. The test replaces the resolver of the system.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <cstdlib>
#include <filesystem>

#include "redis/node.hpp"

namespace {

std::uint16_t first_port = 0;     // NOLINT
std::chrono::milliseconds takes;  // NOLINT

addrinfo* AddressOf(const char* host, std::uint16_t port) {
  auto* const info = static_cast<addrinfo*>(std::calloc(1, sizeof(addrinfo)));
  auto* const address = static_cast<sockaddr_in*>(std::calloc(1, sizeof(sockaddr_in)));
  address->sin_family = AF_INET;
  address->sin_port = htons(port);
  inet_pton(AF_INET, host, &address->sin_addr);
  info->ai_family = AF_INET;
  info->ai_socktype = SOCK_STREAM;
  info->ai_addr = reinterpret_cast<sockaddr*>(address);
  info->ai_addrlen = sizeof(sockaddr_in);
  return info;
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** list) {
  in_addr number{};
  const bool numeric = inet_pton(AF_INET, host, &number) == 1;
  if ((hints->ai_flags & AI_NUMERICHOST) != 0 && !numeric) return EAI_NONAME;
  const auto wanted = static_cast<std::uint16_t>(std::strtol(port, nullptr, 10));
  if (numeric) {
    *list = AddressOf(host, wanted);
    return 0;
  }
  std::this_thread::sleep_for(takes);
  *list = AddressOf("127.0.0.1", wanted);
  if (first_port != 0) {
    addrinfo* const first = AddressOf("127.0.0.1", first_port);
    first->ai_next = *list;
    *list = first;
  }
  return 0;
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

namespace tidegate::redis_test {
namespace {

using namespace std::chrono_literals;

bool ReadyWithin(Node& node, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  bool ready = false;
  while (!ready && std::chrono::steady_clock::now() < until) {
    node.Run([&](RedisStore& redis_store) { ready = redis_store.client().ready(); });
    std::this_thread::sleep_for(5ms);
  }
  return ready;
}

TEST(RedisHostnameTest, ConnectsToRedisByHostname) {
  RedisServer redis;
  takes = 50ms;
  RedisStore::Options options = Node::To(redis);
  options.redis.url.hosts.front().host = "redis.example";
  Node node{options};
  EXPECT_TRUE(ReadyWithin(node, 5s));
}

// Each connection attempt looks the name up again and times out before the lookup ends after 300
// ms. The node must still connect in the end.
TEST(RedisHostnameTest, ConnectsAfterSlowNameLookups) {
  RedisServer redis;
  takes = 300ms;
  RedisStore::Options options = Node::To(redis);
  options.redis.url.hosts.front().host = "redis.example";
  Node node{options};
  EXPECT_TRUE(ReadyWithin(node, 5s));
}

// The first address drops every packet and uses up the whole timeout. The next attempt must not
// start with this address again.
TEST(RedisHostnameTest, TriesNextAddressAfterATimeout) {
  RedisServer redis;
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(listen(silent, 0), 0);
  std::vector<int> full;
  for (int i = 0; i < 4; ++i) {  // Fills the backlog, so that the system drops further SYN packets.
    full.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    (void)connect(full.back(), reinterpret_cast<sockaddr*>(&address), size);
  }
  std::this_thread::sleep_for(50ms);
  takes = 0ms;
  first_port = ntohs(address.sin_port);
  RedisStore::Options options = Node::To(redis);
  options.redis.url.hosts.front().host = "redis.example";
  {
    Node node{options};
    EXPECT_TRUE(ReadyWithin(node, 5s));
  }
  first_port = 0;
  for (const int fd : full) close(fd);
  close(silent);
}

// Each lookup runs in a thread, and the threads of earlier attempts are still waiting. If the
// system can start no more threads, std::thread throws on the reactor, nothing catches the
// exception, and the process ends.
TEST(RedisHostnameTest, UsesOneThreadWhileNameServerDoesNotAnswer) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  takes = 3s;
  RedisStore::Options options = Node::To(1);
  options.redis.url.hosts.front().host = "redis.example";
  Node node{options};
  std::this_thread::sleep_for(100ms);
  const auto before = threads();
  std::this_thread::sleep_for(2s);  // Long enough for eight attempts.
  EXPECT_LE(threads(), before + 1) << "more than one lookup thread for one reactor";
}

}  // namespace
}  // namespace tidegate::redis_test
