// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_pool.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <functional>

#include "net/listener.hpp"

namespace tidegate {
namespace {

struct User final : UpstreamConnection::User {
  void OnUpstreamUp() override { up(); }
  void OnUpstreamFailed(const std::string& problem) override { FAIL() << problem; }
  void OnUpstreamReady() override {}
  std::function<void()> up;
};

net::Deadlines::Durations Durations() {
  net::Deadlines::Durations durations;
  durations.fill(std::chrono::seconds{60});
  return durations;
}

/// A pool with one member, which is a listening socket of this test's.
class UpstreamPoolTest : public ::testing::Test {
 protected:
  UpstreamPoolTest() : reactor_(Durations()) {
    server_ = net::Listen(*net::Endpoint::Parse("127.0.0.1:0")).value();
    UpstreamSpec spec{.name = "u"};
    spec.targets = {{.host = "127.0.0.1", .port = net::Endpoint::OfSocket(server_.get()).port()}};
    pool_ =
        std::make_unique<UpstreamPool>(reactor_, buffers_, Upstream::Make(spec, nullptr).value());
  }
  net::Descriptor Accept() {
    pollfd ready{server_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 5000), 1);
    return net::Descriptor(::accept4(server_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  /// Lends a connection, gives it back when it is up, lets `between` happen to its other end, and
  /// tells whether the next one that is lent is the same. The reactor has no turn in between.
  bool LentAgain(const std::function<void(net::Descriptor&)>& between) {
    const auto member = pool_->members()[0];
    std::string problem;
    bool same = false;
    UpstreamConnection* const first = pool_->Lend(member, user_, problem);
    user_.up = [&] {
      net::Descriptor other = Accept();
      const int fd = first->channel().fd();
      pool_->Return(*first);
      between(other);
      pollfd ready{fd, POLLIN | POLLRDHUP, 0};
      (void)::poll(&ready, 1, 100);
      UpstreamConnection* const second = pool_->Lend(member, user_, problem);
      same = second == first;
      pool_->Discard(*second);
      reactor_.Stop();
    };
    reactor_.Run(std::nullopt);
    return same;
  }

  net::Reactor reactor_;
  net::BufferPool buffers_;
  net::Descriptor server_;
  User user_;
  std::unique_ptr<UpstreamPool> pool_;
};

TEST_F(UpstreamPoolTest, AnIdleConnectionIsLentAgain) {
  EXPECT_TRUE(LentAgain([](net::Descriptor&) {}));
}

TEST_F(UpstreamPoolTest, OneThatHasBytesNobodyAskedForIsNot) {
  EXPECT_FALSE(LentAgain([](net::Descriptor& other) {
    EXPECT_EQ(::send(other.get(), "HTTP/1.1 200 OK\r\n\r\n", 19, MSG_NOSIGNAL), 19);
  }));
}

TEST_F(UpstreamPoolTest, OneThatHasEndedIsNot) {
  EXPECT_FALSE(LentAgain([](net::Descriptor& other) { other.Close(); }));
}

}  // namespace
}  // namespace tidegate
