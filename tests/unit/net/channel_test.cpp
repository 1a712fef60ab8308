// SPDX-License-Identifier: Apache-2.0
#include "net/channel.hpp"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <string>

namespace tidegate::net {
namespace {

/// A channel on one end of a socket pair, and the other end.
class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    channel_.Open(Descriptor(ends[0]));
    other_ = Descriptor(ends[1]);
  }
  void Write(std::string_view text) {
    EXPECT_EQ(::send(other_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    channel_.OnEvents(EPOLLIN);
  }
  /// Returns all bytes that can be read from the other end now.
  std::string ReadAll() {
    std::string all;
    std::array<char, 65536> data{};
    ssize_t got = 0;
    while ((got = ::recv(other_.get(), data.data(), data.size(), 0)) > 0) {
      all.append(data.data(), static_cast<std::size_t>(got));
    }
    return all;
  }

  BufferPool pool_;
  Channel channel_{pool_};
  Descriptor other_;
};

TEST_F(ChannelTest, ReadsOnlyAvailableBytes) {
  EXPECT_EQ(channel_.Fill(), Channel::Got::kNothing);  // epoll has not reported any event.
  Write("hello");
  EXPECT_EQ(channel_.Fill(), Channel::Got::kBytes);
  EXPECT_EQ(channel_.input(), "hello");
  EXPECT_FALSE(channel_.readable());
  channel_.Drop(2);
  Write(" there");
  EXPECT_EQ(channel_.Fill(), Channel::Got::kBytes);
  EXPECT_EQ(channel_.input(), "llo there");
  EXPECT_EQ(channel_.received(), 11u);
}

TEST_F(ChannelTest, ReportsFullBufferUntilCompacted) {
  const std::string block(BufferPool::kBlock, 'x');
  Write(block);
  EXPECT_EQ(channel_.Fill(), Channel::Got::kBytes);
  Write("y");
  EXPECT_EQ(channel_.Fill(), Channel::Got::kFull);
  EXPECT_FALSE(channel_.Compact());
  channel_.Drop(10);
  EXPECT_TRUE(channel_.Compact());
  EXPECT_EQ(channel_.Fill(), Channel::Got::kBytes);
  EXPECT_EQ(channel_.input().size(), block.size() - 9);
  EXPECT_EQ(channel_.input().back(), 'y');
}

TEST_F(ChannelTest, KeepsOnlySmallBufferForFewBytes) {
  BufferBudget budget(2 * BufferPool::kBlock);
  BufferPool pool(&budget);
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const Descriptor other(ends[1]);
  Channel channel(pool);
  channel.Open(Descriptor(ends[0]));
  const auto write = [&](std::string_view text) {
    ASSERT_EQ(::send(other.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    channel.OnEvents(EPOLLIN);
    ASSERT_EQ(channel.Fill(), Channel::Got::kBytes);
  };
  write("GET /");
  EXPECT_TRUE(channel.Rest());
  EXPECT_EQ(channel.input(), "GET /");
  EXPECT_EQ(budget.used(), 1024u);
  write(std::string(2000, 'x'));
  EXPECT_EQ(channel.input().size(), 2005u);
  EXPECT_EQ(channel.input().substr(0, 6), "GET /x");
  EXPECT_TRUE(channel.Rest());
  EXPECT_EQ(budget.used(), BufferPool::kBlock);
  channel.Drop(2005);
  EXPECT_TRUE(channel.Rest());
  EXPECT_EQ(budget.used(), 0u);
}

TEST_F(ChannelTest, ReportsExhaustedMemoryBudget) {
  BufferBudget budget(2 * BufferPool::kBlock);
  ASSERT_TRUE(budget.Take(100, BufferBudget::Use::kChecked));
  BufferPool pool(&budget);
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  const Descriptor other(ends[1]);
  {
    Channel channel(pool);
    channel.Open(Descriptor(ends[0]));
    const std::string text(3000, 'x');
    ASSERT_EQ(::send(other.get(), text.data(), text.size(), 0), 3000);
    channel.OnEvents(EPOLLIN);
    ASSERT_EQ(channel.Fill(), Channel::Got::kBytes);
    EXPECT_FALSE(channel.Rest());
    EXPECT_EQ(budget.refused(), 1u);
    budget.Return(100);
    EXPECT_TRUE(channel.Rest());
  }
  EXPECT_EQ(budget.used(), 0u);  // A channel that is destroyed returns its memory to the budget.
}

TEST_F(ChannelTest, GrowsBufferUpToLimit) {
  Write(std::string(BufferPool::kBlock, 'x'));
  EXPECT_EQ(channel_.Fill(), Channel::Got::kBytes);
  EXPECT_TRUE(channel_.Grow(BufferPool::kBlock + 100));
  Write(std::string(200, 'y'));
  EXPECT_EQ(channel_.Fill(), Channel::Got::kBytes);
  EXPECT_EQ(channel_.input().size(), BufferPool::kBlock + 100);
  EXPECT_EQ(channel_.Fill(), Channel::Got::kFull);
  EXPECT_FALSE(channel_.Grow(BufferPool::kBlock + 100));
  channel_.Drop(channel_.input().size());
  EXPECT_TRUE(channel_.Rest());
  EXPECT_EQ(channel_.Fill(), Channel::Got::kBytes);
  EXPECT_EQ(channel_.input(), std::string(100, 'y'));
}

TEST_F(ChannelTest, ReadsLastBytesBeforeReportingEnd) {
  Write("last");
  other_.Close();
  channel_.OnEvents(EPOLLIN | EPOLLRDHUP);
  EXPECT_TRUE(channel_.hung_up());
  EXPECT_EQ(channel_.Fill(), Channel::Got::kBytes);
  EXPECT_EQ(channel_.Fill(), Channel::Got::kEnd);
  EXPECT_EQ(channel_.input(), "last");
}

TEST_F(ChannelTest, FlushSendsSmallWritesTogether) {
  channel_.out() << "head ";
  EXPECT_TRUE(channel_.Send("body"));
  EXPECT_EQ(ReadAll(), "");
  EXPECT_TRUE(channel_.Flush());
  EXPECT_EQ(ReadAll(), "head body");
  EXPECT_FALSE(channel_.blocked());
}

TEST_F(ChannelTest, KeepsUnsentBytesInOrder) {
  std::string sent = "head ";
  channel_.out() << "head ";
  for (int i = 0; i < 1000 && !channel_.blocked(); ++i) {
    const std::string data(8000, static_cast<char>('a' + i % 26));
    EXPECT_TRUE(channel_.Send(data));
    sent += data;
  }
  ASSERT_TRUE(channel_.blocked());
  EXPECT_LT(channel_.pending(), 8001u);  // At most the last write is buffered.
  std::string got;
  while (channel_.blocked()) {
    got += ReadAll();
    EXPECT_TRUE(channel_.Flush());
  }
  got += ReadAll();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(channel_.sent(), sent.size());
}

TEST_F(ChannelTest, FlushFailsWhenPeerHasClosed) {
  other_.Close();
  channel_.out() << "hello";
  EXPECT_FALSE(channel_.Flush());
}

}  // namespace
}  // namespace tidegate::net
