// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "net/endpoint.hpp"
#include "support/wait.hpp"

namespace tidegate::test {

/// A blocking connection with a buffer of bytes that were received but not yet read. No call waits
/// longer than kPatience. Only Wake may be called from another thread.
class Stream {
 public:
  enum class Got : std::uint8_t {
    kBytes,
    kEnd,      ///< The other side closed its sending direction.
    kCut,      ///< The connection was reset; with TLS also: it ended without close_notify.
    kNothing,  ///< No bytes arrived within kPatience.
  };
  /// The result of WaitForEnd.
  enum class End : std::uint8_t { kClosed, kReset, kBytes, kOpen };
  enum class How : bool { kClose, kReset };

  /// Connects; the test fails if that is impossible. `receive_buffer` is the buffer size of the
  /// socket in bytes; 0: the system's default.
  explicit Stream(const net::Endpoint& to, int receive_buffer = 0);
  /// Takes over a connected socket.
  explicit Stream(int fd);
  virtual ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Sends bytes. Returns false if the other side accepts no more.
  virtual bool Send(std::string_view bytes);
  /// Closes the sending direction of this side; it can still receive.
  virtual void EndSending();
  /// Closes the connection so that the other side sees a reset.
  void Reset();
  void Close();
  /// Ends blocking calls of the owning thread; may be called from any thread. kReset: a later
  /// Close() resets the connection.
  void Wake(How how);

  /// Appends the next bytes to `to`.
  virtual Got Receive(std::string& to);
  /// Appends the next bytes to the buffer that the functions below read from.
  Got Receive();
  /// Returns the bytes up to and including `end`; if the connection ends before, all bytes that
  /// arrived.
  std::string ReadUntil(std::string_view end);
  std::string ReadExactly(std::size_t count);
  /// Returns all bytes until the end of the connection.
  std::string ReadRest();
  /// Returns true if a byte can be read now or within `at_most`.
  [[nodiscard]] bool Readable(std::chrono::milliseconds at_most);
  /// Waits for the end of the connection and returns how it ended; kOpen: not within `at_most`.
  End WaitForEnd(std::chrono::milliseconds at_most = kPatience);

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Returns how many reads returned bytes.
  [[nodiscard]] int reads() const noexcept { return reads_; }

 private:
  void SetOptions();

  /// Guards `fd_`: the number of a closed descriptor may already belong to another socket.
  std::mutex closing_;
  std::atomic<int> fd_;
  std::string received_;
  int reads_ = 0;
};

}  // namespace tidegate::test
