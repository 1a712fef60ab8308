// SPDX-License-Identifier: Apache-2.0
#include "net/channel.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tidegate::net {
namespace {

/// Below this size a copy is cheaper than a second part in a system call.
constexpr std::size_t kCopied = 2048;
/// Larger output buffers are not kept.
constexpr std::size_t kKeptOut = 32u << 10;
/// The size of the small buffer of a connection that waits with a few bytes of input.
constexpr std::size_t kSmall = 1024;

// Direct system calls, because recv and send are cancellation points: 1 % of a request.
ssize_t Receive(int socket, char* data, std::size_t size) noexcept {
  return syscall(SYS_recvfrom, socket, data, size, 0, nullptr, nullptr);
}
/// Sends both texts with one system call. REQUIRES: `second` is empty if `first` is.
ssize_t SendTwo(int socket, std::string_view first, std::string_view second) noexcept {
  if (second.empty()) {
    return syscall(SYS_sendto, socket, first.data(), first.size(), MSG_NOSIGNAL, nullptr, 0);
  }
  iovec parts[] = {{const_cast<char*>(first.data()), first.size()},
                   {const_cast<char*>(second.data()), second.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return syscall(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
}

}  // namespace

void BufferPool::GiveOut(std::unique_ptr<OutBuffer> out) noexcept {
  out->Clear();
  if (outs_.capacity() == 0) outs_.reserve(kKeptOuts);
  if (outs_.size() < kKeptOuts && out->capacity() <= kKeptOut) outs_.push_back(std::move(out));
}

Channel::~Channel() { Close(); }

void Channel::Close(Input input) noexcept {
  if (tls_ != nullptr && !reset_) tls_->Close();
  tls_.reset();
  socket_.Close();
  sent_ = 0;
  if (out_ != nullptr) pool_.GiveOut(std::move(out_));
  if (input == Input::kDropped) ReleaseBuffer();
}

void Channel::OnEvents(std::uint32_t events) noexcept {
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) hung_up_ = true;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) reset_ = true;
}

Channel::Got Channel::Fill() {
  if (!readable_) return Got::kNothing;
  if (begin_ == end_) begin_ = end_ = 0;
  if (capacity_ < pool_.block()) MoveTo(pool_.TakeBlock(), pool_.block());
  if (end_ == capacity_) return Got::kFull;
  const std::size_t room = capacity_ - end_;
  while (true) {
    const ssize_t got = tls_ != nullptr ? tls_->Read(data_ + end_, room)
                                        : Receive(socket_.get(), data_ + end_, room);
    if (got > 0) {
      const auto bytes = static_cast<std::size_t>(got);
      end_ += bytes;
      received_ += bytes;
      // A read that leaves room has read everything, unless the end of the stream follows, which no
      // further event reports. With TLS a read returns one record at a time.
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
  if (capacity_ == pool_.block()) pool_.GiveBlock(std::move(block_));
  block_ = std::move(buffer);
  data_ = block_.get();
  capacity_ = capacity;
  begin_ = 0;
  end_ = size;
}

void Channel::ReleaseBuffer() noexcept {
  (void)Hold(0);
  if (block_ == nullptr) return;
  if (capacity_ == pool_.block()) pool_.GiveBlock(std::move(block_));
  block_.reset();
  data_ = nullptr;
  capacity_ = begin_ = end_ = 0;
}

bool Channel::Hold(std::size_t bytes, BufferBudget::Use use) noexcept {
  // Checked before the pool is used, so that a channel that holds nothing may outlive its pool.
  if (bytes == held_) return true;
  BufferBudget* const budget = pool_.budget();
  return budget == nullptr || budget->Adjust(held_, bytes, use);
}

void Channel::Shrink() noexcept {
  const std::size_t size = end_ - begin_;
  if (size == 0) return ReleaseBuffer();
  if (capacity_ <= pool_.block() || size > pool_.block() / 2) return;
  MoveTo(pool_.TakeBlock(), pool_.block());
  (void)Hold(0);
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

OutBuffer& Channel::out() {
  if (out_ == nullptr) out_ = pool_.TakeOut();
  return *out_;
}

/// Sends `first` and then `second`. Returns the total number of bytes sent, kIoWait or kIoBroken.
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
      // The next read returns the bytes that the other side has sent, and then the error.
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

}  // namespace tidegate::net
