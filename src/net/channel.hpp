// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "net/buffers.hpp"
#include "net/descriptor.hpp"
#include "net/tls.hpp"

namespace tidegate::net {

/// A socket, with or without TLS, and the buffers for its unused input and unsent output. epoll
/// reports events edge-triggered, so a channel remembers whether it can be read. It does not
/// interpret the bytes.
class Channel {
 public:
  enum class Got : std::uint8_t {
    kBytes,
    kNothing,  ///< Nothing has arrived: wait for the next event.
    kFull,     ///< The buffer is full: consume input, or enlarge the buffer.
    kEnd,      ///< The other side has ended its half of the connection.
    kBroken,   ///< The connection was reset.
  };

  explicit Channel(BufferPool& pool) noexcept : pool_(pool) {}
  ~Channel();

  /// Takes over a socket and its TLS session, if there is one. The session may hold bytes that no
  /// event will report. REQUIRES: the handshake of `tls`, if given, is done.
  void Open(Descriptor socket, std::unique_ptr<TlsSession> tls = nullptr) noexcept {
    socket_ = std::move(socket);
    tls_ = std::move(tls);
    readable_ = tls_ != nullptr;
  }
  /// Creates a TLS session, whose handshake the caller must complete before it reads or writes.
  /// Returns false if the session cannot be created. REQUIRES: open().
  [[nodiscard]] bool BeginTls(const TlsClient& client, const std::string& name) {
    tls_ = client.NewSession(socket_.get(), name);
    return tls_ != nullptr;
  }
  [[nodiscard]] TlsSession* tls() noexcept { return tls_.get(); }
  /// Selects whether Close keeps the input, because views may still point into it.
  enum class Input : std::uint8_t { kDropped, kKept };
  void Close(Input input = Input::kDropped) noexcept;
  /// Makes Close reset the connection, to show that the bytes sent so far are incomplete.
  void Abort() noexcept {
    const linger abort{.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
    reset_ = true;
  }
  /// Returns true if there is no unread input, as far as is known without a system call.
  [[nodiscard]] bool quiet() const noexcept {
    return begin_ == end_ && (tls_ == nullptr || !tls_->HasPending());
  }
  [[nodiscard]] bool open() const noexcept { return static_cast<bool>(socket_); }
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }

  void OnEvents(std::uint32_t events) noexcept;
  [[nodiscard]] bool readable() const noexcept { return readable_; }
  /// Returns true if the other side has ended its half of the connection, or both halves. Input
  /// that has arrived can still be read.
  [[nodiscard]] bool hung_up() const noexcept { return hung_up_; }
  /// Returns true if nothing can be sent any more.
  [[nodiscard]] bool reset() const noexcept { return reset_; }

  // --- In ---
  /// Reads from the socket once, and appends the bytes to input().
  [[nodiscard]] Got Fill();
  [[nodiscard]] std::string_view input() const noexcept { return {data_ + begin_, end_ - begin_}; }
  [[nodiscard]] std::span<char> raw() noexcept { return {data_ + begin_, end_ - begin_}; }
  void Drop(std::size_t bytes) noexcept { begin_ += bytes; }
  /// Makes room by compacting the buffer, or by doubling it up to `most` bytes. Returns false if
  /// the buffer is full and has that size. Moves the input.
  [[nodiscard]] bool Grow(std::size_t most);
  /// Moves the input to a buffer of `capacity` bytes, taken from the budget at once. Returns false
  /// if the budget has no room. REQUIRES: the present buffer is smaller.
  [[nodiscard]] bool GrowTo(std::size_t capacity, BufferBudget::Use use) {
    if (!Hold(capacity, use)) return false;
    MoveTo(std::unique_ptr<char[]>(new char[capacity]), capacity);
    return true;
  }
  /// Gives an empty buffer back to the pool. Moves the input from a larger buffer to a block if it
  /// fills at most half of the block.
  void Shrink() noexcept;
  /// Removes `count` bytes at `at`, counted from the front of input().
  void Erase(std::size_t at, std::size_t count) noexcept {
    char* const to = data_ + begin_ + at;
    std::memmove(to, to + count, end_ - begin_ - at - count);
    end_ -= count;
  }
  /// Moves the input to the front of the buffer. Returns false if the buffer is full.
  bool Compact() noexcept {
    if (begin_ == 0) return end_ < capacity_;
    std::memmove(data_, data_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    return true;
  }
  /// Call when the channel waits for input. Gives an empty buffer back to the pool, and moves a few
  /// bytes of input to a small buffer. Returns false if the budget has no room for the input: close
  /// the connection.
  [[nodiscard]] bool Rest();
  [[nodiscard]] std::size_t received() const noexcept { return received_; }

  // --- Out ---
  /// Returns the output buffer, which Flush sends.
  [[nodiscard]] OutBuffer& out();
  /// Appends `data` to out(); large data is sent at once, after out(), without a copy. Returns
  /// false if the connection is broken.
  [[nodiscard]] bool Send(std::string_view data);
  /// Sends as much as the socket accepts. Returns false if the connection is broken.
  [[nodiscard]] bool Flush() { return pending() == 0 || Push({}); }
  /// After Flush: returns true if the socket accepts no more for now. Write nothing until Flush has
  /// sent the rest.
  [[nodiscard]] bool blocked() const noexcept { return pending() > 0; }
  [[nodiscard]] std::size_t pending() const noexcept {
    return out_ == nullptr ? 0 : out_->size() - sent_;
  }
  [[nodiscard]] std::size_t sent() const noexcept { return total_sent_; }
  /// Ends the sending half. The other side may go on sending.
  void ShutdownWrite() noexcept {
    if (std::exchange(shut_, true)) return;
    if (tls_ != nullptr) tls_->Close();
    if (socket_) (void)::shutdown(socket_.get(), SHUT_WR);
  }
  /// Ends the sending half of a connection whose further input will be dropped.
  void ShutdownAndDropInput() noexcept {
    if (!std::exchange(shut_, true) && tls_ != nullptr) tls_->Close();
    if (socket_) net::ShutdownAndDropInput(socket_.get());
  }

 private:
  [[nodiscard]] ssize_t Write(std::string_view first, std::string_view second);
  /// Sends out() and `second`, and keeps the rest. Returns false if the connection is broken.
  [[nodiscard]] bool Push(std::string_view second);
  void ReleaseBuffer() noexcept;
  /// Moves the input to `buffer`, which has room for `capacity` bytes.
  void MoveTo(std::unique_ptr<char[]> buffer, std::size_t capacity) noexcept;
  /// Changes the bytes taken from the budget to `bytes`. Returns false if the budget has no room.
  [[nodiscard]] bool Hold(std::size_t bytes,
                          BufferBudget::Use use = BufferBudget::Use::kUnchecked) noexcept;

  BufferPool& pool_;
  Descriptor socket_;
  std::unique_ptr<TlsSession> tls_;
  bool readable_ = false;
  bool hung_up_ = false;
  bool reset_ = false;
  bool shut_ = false;  ///< This side has ended its sending half.

  std::unique_ptr<char[]> block_;
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t received_ = 0;
  std::size_t held_ = 0;  ///< Bytes taken from the pool's budget.

  std::unique_ptr<OutBuffer> out_;
  std::size_t sent_ = 0;  ///< Bytes of out_ that are sent.
  std::size_t total_sent_ = 0;
};

}  // namespace tidegate::net
