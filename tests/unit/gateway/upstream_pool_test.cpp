// SPDX-License-Identifier: Apache-2.0
#include "gateway/upstream_pool.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <functional>
#include <utility>

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

/// A pool with one member, which is a listening socket of this test.
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
  /// Lends a connection, returns it once it is connected, calls `between` with its other end, and
  /// lends again. Returns true if the second connection is the first one again. The reactor
  /// processes no events in between.
  bool LentAgain(const std::function<void(net::Descriptor&)>& between) {
    const auto member = pool_->members()[0];
    std::string problem;
    bool same = false;
    UpstreamConnection* const first =
        pool_->Lend(member, user_, Member::Clock::now(), problem, ours_);
    user_.up = [&] {
      net::Descriptor other = Accept();
      const int fd = first->channel().fd();
      pool_->Return(*first);
      between(other);
      pollfd ready{fd, POLLIN | POLLRDHUP, 0};
      (void)::poll(&ready, 1, 100);
      UpstreamConnection* const second =
          pool_->Lend(member, user_, Member::Clock::now(), problem, ours_);
      same = second == first;
      pool_->Discard(*second);
      reactor_.Stop();
    };
    reactor_.Run(std::nullopt);
    return same;
  }

  bool ours_ = false;
  net::Reactor reactor_;
  net::BufferPool buffers_;
  net::Descriptor server_;
  User user_;
  std::unique_ptr<UpstreamPool> pool_;
};

/// Calls `run` at the first event of a round of the reactor.
struct Trigger final : net::Watcher {
  void OnReady(std::uint32_t) override {
    std::exchange(run, [] {})();
  }
  void Fire() const {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(event.get(), &one, sizeof one), 8);
  }
  net::Descriptor event{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  std::function<void()> run = [] {};
};

/// epoll has reported the end of an idle connection, but its event is processed only after a
/// request needs a connection, in the same round.
TEST_F(UpstreamPoolTest, DoesNotLendIdleConnectionWithPendingEvent) {
  const auto member = pool_->members()[0];
  std::string problem;
  net::Descriptor other;
  Trigger trigger;
  ASSERT_TRUE(reactor_.Watch(trigger.event.get(), trigger));
  UpstreamConnection* const first =
      pool_->Lend(member, user_, Member::Clock::now(), problem, ours_);
  bool same = true;
  user_.up = [&] {
    other = Accept();
    const int fd = first->channel().fd();
    pool_->Return(*first);
    trigger.run = [&] {
      UpstreamConnection* const second = pool_->Lend(member, user_, reactor_.now(), problem, ours_);
      same = second == first;
      pool_->Discard(*second);
      reactor_.Stop();
    };
    trigger.Fire();
    other.Close();
    pollfd ready{fd, POLLIN | POLLRDHUP, 0};
    EXPECT_EQ(::poll(&ready, 1, 5000), 1);
  };
  reactor_.Run(std::nullopt);
  EXPECT_FALSE(same);
}

TEST_F(UpstreamPoolTest, LendsConnectionThatWasIdleWhenTheRoundBegan) {
  const auto member = pool_->members()[0];
  std::string problem;
  net::Descriptor other;
  Trigger trigger;
  ASSERT_TRUE(reactor_.Watch(trigger.event.get(), trigger));
  UpstreamConnection* const first =
      pool_->Lend(member, user_, Member::Clock::now(), problem, ours_);
  bool same = false;
  user_.up = [&] {
    other = Accept();
    pool_->Return(*first);
    trigger.run = [&] {
      UpstreamConnection* const second = pool_->Lend(member, user_, reactor_.now(), problem, ours_);
      same = second == first;
      pool_->Discard(*second);
      reactor_.Stop();
    };
    trigger.Fire();
  };
  reactor_.Run(std::nullopt);
  EXPECT_TRUE(same);
}

TEST_F(UpstreamPoolTest, LendsIdleConnectionAgain) {
  EXPECT_TRUE(LentAgain([](net::Descriptor&) {}));
}

TEST_F(UpstreamPoolTest, DoesNotLendIdleConnectionWithUnexpectedBytes) {
  EXPECT_FALSE(LentAgain([](net::Descriptor& other) {
    EXPECT_EQ(::send(other.get(), "HTTP/1.1 200 OK\r\n\r\n", 19, MSG_NOSIGNAL), 19);
  }));
}

TEST_F(UpstreamPoolTest, DoesNotLendClosedConnection) {
  EXPECT_FALSE(LentAgain([](net::Descriptor& other) { other.Close(); }));
}

}  // namespace
}  // namespace tidegate
