// SPDX-License-Identifier: Apache-2.0
#include "net/channel.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tidegate::net {
namespace {

/// Below it a copy is cheaper than a second part of a system call.
constexpr std::size_t kCopied = 2048;
/// An output buffer that grew beyond it is not kept.
constexpr std::size_t kKeptOut = 32u << 10;
/// The size of the small buffer of a connection that waits with a few bytes in hand.
constexpr std::size_t kSmall = 1024;

// Not through the C library, whose recv and send are points of cancellation: see http_connection.
ssize_t Receive(int socket, char* data, std::size_t size) noexcept {
  return syscall(SYS_recvfrom, socket, data, size, 0, nullptr, nullptr);
}
ssize_t SendTwo(int socket, std::string_view first, std::string_view second) noexcept {
  if (second.empty()) {
    return syscall(SYS_sendto, socket, first.data(), first.size(), MSG_NOSIGNAL, nullptr, 0);
  }
  std::array<iovec, 2> parts{};
  std::size_t count = 0;
  for (const std::string_view part : {first, second}) {
    if (!part.empty()) parts[count++] = {const_cast<char*>(part.data()), part.size()};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return syscall(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
}

}  // namespace

std::unique_ptr<char[]> BufferPool::TakeBlock() {
  if (blocks_.empty()) return std::unique_ptr<char[]>(new char[kBlock]);
  auto block = std::move(blocks_.back());
  blocks_.pop_back();
  return block;
}

void BufferPool::GiveBlock(std::unique_ptr<char[]> block) noexcept {
  if (blocks_.capacity() == 0) blocks_.reserve(kKept);
  if (blocks_.size() < kKept) blocks_.push_back(std::move(block));
}

std::unique_ptr<OutBuffer> BufferPool::TakeOut() {
  if (outs_.empty()) return std::make_unique<OutBuffer>();
  auto out = std::move(outs_.back());
  outs_.pop_back();
  return out;
}

void BufferPool::GiveOut(std::unique_ptr<OutBuffer> out) noexcept {
  out->Clear();
  if (outs_.capacity() == 0) outs_.reserve(kKeptOuts);
  if (outs_.size() < kKeptOuts && out->capacity() <= kKeptOut) outs_.push_back(std::move(out));
}

void BufferPool::Trim() noexcept {
  if (blocks_.size() > kKeptByTrim) blocks_.resize(kKeptByTrim);
  if (outs_.size() > kKeptByTrim) outs_.resize(kKeptByTrim);
}

Channel::~Channel() { Close(); }

bool Channel::BeginTls(const TlsClient& client, const std::string& name) {
  tls_ = client.NewSession(socket_.get(), name);
  return tls_ != nullptr;
}

void Channel::Close() noexcept {
  if (tls_ != nullptr && !reset_) tls_->Close();
  tls_.reset();
  socket_.Close();
  begin_ = end_ = 0;
  sent_ = 0;
  if (out_ != nullptr) pool_.GiveOut(std::move(out_));
  ReleaseBuffer();
}

void Channel::Abort() noexcept {
  const linger abort{.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
  reset_ = true;
}

void Channel::OnEvents(std::uint32_t events) noexcept {
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) hung_up_ = true;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) reset_ = true;
}

// --- In -----------------------------------------------------------------------

Channel::Got Channel::Fill() {
  if (!readable_) return Got::kNothing;
  if (begin_ == end_) begin_ = end_ = 0;
  if (capacity_ < BufferPool::kBlock) MoveTo(pool_.TakeBlock(), BufferPool::kBlock);
  if (end_ == capacity_) return Got::kFull;
  const std::size_t room = capacity_ - end_;
  while (true) {
    const ssize_t got = tls_ != nullptr ? tls_->Read(data_ + end_, room)
                                        : Receive(socket_.get(), data_ + end_, room);
    if (got > 0) {
      const auto bytes = static_cast<std::size_t>(got);
      end_ += bytes;
      received_ += bytes;
      // Less than there was room for: that was all, unless the end of the stream follows
      // unannounced. TLS gives a record at a time.
      if (bytes < room && !hung_up_ && tls_ == nullptr) readable_ = false;
      return Got::kBytes;
    }
    if (got == 0) return Got::kEnd;
    if (tls_ != nullptr) {
      if (got == kIoBroken) return Got::kBroken;
    } else {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return Got::kBroken;
    }
    readable_ = false;
    if (begin_ == end_) ReleaseBuffer();
    return Got::kNothing;
  }
}

bool Channel::Compact() noexcept {
  if (begin_ == 0) return end_ < capacity_;
  std::memmove(data_, data_ + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  return true;
}

bool Channel::Grow(std::size_t most) {
  if (begin_ > 0) return Compact();
  if (capacity_ >= most) return false;
  const std::size_t capacity = std::min(most, capacity_ * 2);
  MoveTo(std::unique_ptr<char[]>(new char[capacity]), capacity);
  return true;
}

void Channel::MoveTo(std::unique_ptr<char[]> buffer, std::size_t capacity) noexcept {
  const std::size_t size = end_ - begin_;
  if (size > 0) std::memcpy(buffer.get(), data_ + begin_, size);
  if (capacity_ == BufferPool::kBlock) pool_.GiveBlock(std::move(block_));
  block_ = std::move(buffer);
  data_ = block_.get();
  capacity_ = capacity;
  begin_ = 0;
  end_ = size;
}

void Channel::ReleaseBuffer() noexcept {
  (void)Hold(0);
  if (block_ == nullptr) return;
  if (capacity_ == BufferPool::kBlock) pool_.GiveBlock(std::move(block_));
  block_.reset();
  data_ = nullptr;
  capacity_ = begin_ = end_ = 0;
}

bool Channel::Hold(std::size_t bytes) noexcept {
  // First, so that a channel that holds nothing may outlive its pool.
  if (bytes == held_) return true;
  BufferBudget* const budget = pool_.budget();
  if (budget == nullptr) return true;
  if (bytes > held_ && !budget->Take(bytes - held_, BufferBudget::Use::kUnchecked)) return false;
  if (bytes < held_) budget->Return(held_ - bytes);
  held_ = bytes;
  return true;
}

bool Channel::Rest() {
  const std::size_t size = end_ - begin_;
  if (size == 0) {
    ReleaseBuffer();
    return true;
  }
  if (size <= kSmall && capacity_ > kSmall) {
    MoveTo(std::unique_ptr<char[]>(new char[kSmall]), kSmall);
  }
  return Hold(capacity_);
}

// --- Out ----------------------------------------------------------------------

OutBuffer& Channel::out() {
  if (out_ == nullptr) out_ = pool_.TakeOut();
  return *out_;
}

/// Bytes that were taken of both, kIoWait or kIoBroken.
ssize_t Channel::Write(std::string_view first, std::string_view second) {
  if (tls_ != nullptr) {
    const std::string_view now = first.empty() ? second : first;
    return tls_->Write(now.data(), now.size());
  }
  while (true) {
    if (first.empty()) std::swap(first, second);
    const ssize_t sent = SendTwo(socket_.get(), first, second);
    if (sent >= 0) return sent;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? kIoWait : kIoBroken;
  }
}

bool Channel::Push(std::string_view second) {
  while (pending() > 0 || !second.empty()) {
    const std::string_view first = out_ == nullptr ? "" : out_->view().substr(sent_);
    const ssize_t sent = Write(first, second);
    if (sent == kIoBroken) {
      // Why, and what the other side said before, can only be read.
      readable_ = hung_up_ = true;
      return false;
    }
    if (sent == kIoWait) break;
    const auto bytes = static_cast<std::size_t>(sent);
    total_sent_ += bytes;
    const std::size_t of_first = std::min(bytes, first.size());
    sent_ += of_first;
    second.remove_prefix(bytes - of_first);
  }
  if (!second.empty()) {
    if (pending() == 0 && out_ != nullptr) {
      out_->Clear();
      sent_ = 0;
    }
    out() << second;
  } else if (pending() == 0 && out_ != nullptr) {
    sent_ = 0;
    pool_.GiveOut(std::move(out_));
  }
  return true;
}

bool Channel::Send(std::string_view data) {
  if (data.size() < kCopied) {
    if (!data.empty()) out() << data;
    return true;
  }
  return Push(data);
}

bool Channel::Flush() { return pending() == 0 || Push({}); }

void Channel::ShutdownWrite() noexcept {
  if (std::exchange(shut_, true)) return;
  if (tls_ != nullptr) tls_->Close();
  if (socket_) (void)::shutdown(socket_.get(), SHUT_WR);
}

void Channel::ShutdownAndDropInput() noexcept {
  if (!std::exchange(shut_, true) && tls_ != nullptr) tls_->Close();
  if (socket_) net::ShutdownAndDropInput(socket_.get());
}

}  // namespace tidegate::net
