// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "net/buffer_budget.hpp"
#include "net/descriptor.hpp"
#include "net/out_buffer.hpp"
#include "net/tls_client.hpp"
#include "net/tls_session.hpp"

namespace tidegate::net {

/// The unused buffers of one reactor. A connection has one only while there are bytes in it.
class BufferPool {
 public:
  /// The size of a block, and so the most that one read returns: a request's head with room to
  /// spare, and large enough that the system calls of a long body do not matter (2 GiB: 131,072
  /// reads).
  static constexpr std::size_t kBlock = 16u << 10;

  /// `budget` limits what channels hold while they wait; nullptr: no limit. It must outlive the
  /// pool.
  explicit BufferPool(BufferBudget* budget = nullptr) noexcept : budget_(budget) {}

  [[nodiscard]] BufferBudget* budget() const noexcept { return budget_; }
  [[nodiscard]] std::unique_ptr<char[]> TakeBlock();
  void GiveBlock(std::unique_ptr<char[]> block) noexcept;
  [[nodiscard]] std::unique_ptr<OutBuffer> TakeOut();
  void GiveOut(std::unique_ptr<OutBuffer> out) noexcept;
  /// Frees unused buffers, but for a few.
  void Trim() noexcept;

 private:
  /// Unused buffers that are kept: 4 MiB of blocks, and at most 4 MiB of output buffers.
  static constexpr std::size_t kKept = 256;
  static constexpr std::size_t kKeptOuts = 128;
  static constexpr std::size_t kKeptByTrim = 16;
  BufferBudget* budget_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::vector<std::unique_ptr<OutBuffer>> outs_;
};

/// One end of a connection that carries messages: a socket (with TLS, or without), what came from
/// it and was not used yet, and what was written and not taken by it yet. Edge-triggered: told of
/// epoll's events, it remembers what can be done. Knows nothing of messages.
class Channel {
 public:
  enum class Got : std::uint8_t {
    kBytes,
    kNothing,  ///< Until the next event.
    kFull,     ///< There is no room: use what is there, or Grow.
    kEnd,      ///< The other side sends no more.
    kBroken,
  };

  explicit Channel(BufferPool& pool) noexcept : pool_(pool) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// `tls`: its handshake is done. There may be bytes in it that no event will tell of.
  void Open(Descriptor socket, std::unique_ptr<TlsSession> tls = nullptr) noexcept {
    socket_ = std::move(socket);
    tls_ = std::move(tls);
    readable_ = tls_ != nullptr;
  }
  /// REQUIRES: open. Handshake before anything else.
  [[nodiscard]] bool BeginTls(const TlsClient& client, const std::string& name);
  [[nodiscard]] TlsSession* tls() noexcept { return tls_.get(); }
  void Close() noexcept;
  /// Close will not say goodbye: what was sent is not all.
  void Abort() noexcept;
  /// Nothing has come that was not read, as far as can be told without asking the system.
  [[nodiscard]] bool quiet() const noexcept {
    return begin_ == end_ && (tls_ == nullptr || !tls_->HasPending());
  }
  [[nodiscard]] bool open() const noexcept { return static_cast<bool>(socket_); }
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }

  void OnEvents(std::uint32_t events) noexcept;
  [[nodiscard]] bool readable() const noexcept { return readable_; }
  /// The other side has ended its half, or both: what is there can still be read.
  [[nodiscard]] bool hung_up() const noexcept { return hung_up_; }
  /// Nothing can be sent any more either.
  [[nodiscard]] bool reset() const noexcept { return reset_; }

  // --- In ---
  /// One read behind what is there.
  [[nodiscard]] Got Fill();
  [[nodiscard]] std::string_view input() const noexcept { return {data_ + begin_, end_ - begin_}; }
  [[nodiscard]] std::span<char> raw() noexcept { return {data_ + begin_, end_ - begin_}; }
  void Drop(std::size_t bytes) noexcept { begin_ += bytes; }
  /// Twice the room, `most` at the most; false: it is that large already. What is there moves.
  [[nodiscard]] bool Grow(std::size_t most);
  /// Room behind what is there by moving it to the front. False: there is none to be had.
  bool Compact() noexcept;
  /// Call when the channel waits for input. Gives back an empty buffer, and moves a few bytes to a
  /// small one. Returns false if the pool's budget has no room for the bytes in hand: then close
  /// the connection.
  [[nodiscard]] bool Rest();
  [[nodiscard]] std::size_t received() const noexcept { return received_; }

  // --- Out ---
  /// Leaves with Flush.
  [[nodiscard]] OutBuffer& out();
  /// Behind what is in out(); large data goes past it where the socket takes it. False: broken.
  [[nodiscard]] bool Send(std::string_view data);
  /// False: broken.
  [[nodiscard]] bool Flush();
  /// The socket takes no more for now: write nothing until Flush has emptied it.
  [[nodiscard]] bool blocked() const noexcept { return pending() > 0; }
  [[nodiscard]] std::size_t pending() const noexcept {
    return out_ == nullptr ? 0 : out_->size() - sent_;
  }
  [[nodiscard]] std::size_t sent() const noexcept { return total_sent_; }
  /// Ends the sending half. The other side may go on sending.
  void ShutdownWrite() noexcept;
  /// Ends the sending half of a connection whose further input will be dropped.
  void ShutdownAndDropInput() noexcept;

 private:
  [[nodiscard]] ssize_t Write(std::string_view first, std::string_view second);
  /// False: broken. What was not taken of `second` is kept.
  [[nodiscard]] bool Push(std::string_view second);
  void ReleaseBuffer() noexcept;
  /// Moves the bytes in hand to `buffer`, which has room for `capacity` bytes.
  void MoveTo(std::unique_ptr<char[]> buffer, std::size_t capacity) noexcept;
  /// Takes from the budget, or returns to it, so that `bytes` are taken.
  [[nodiscard]] bool Hold(std::size_t bytes) noexcept;

  BufferPool& pool_;
  Descriptor socket_;
  std::unique_ptr<TlsSession> tls_;
  bool readable_ = false;
  bool hung_up_ = false;
  bool reset_ = false;
  bool shut_ = false;  ///< This side sends no more.

  std::unique_ptr<char[]> block_;
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t received_ = 0;
  std::size_t held_ = 0;  ///< Bytes taken from the pool's budget.

  std::unique_ptr<OutBuffer> out_;
  std::size_t sent_ = 0;  ///< Of out_.
  std::size_t total_sent_ = 0;
};

}  // namespace tidegate::net
