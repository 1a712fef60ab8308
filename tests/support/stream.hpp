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

/// A blocking connection, and the bytes of it that have been received but not read. No call waits
/// longer than kPatience. One thread uses it, except for Wake.
class Stream {
 public:
  enum class Got : std::uint8_t {
    kBytes,
    kEnd,      ///< The other side has ended its sending in good order.
    kCut,      ///< A reset; through TLS also an end without close_notify.
    kNothing,  ///< Nothing within kPatience.
  };
  /// What WaitForEnd found.
  enum class End : std::uint8_t { kClosed, kReset, kBytes, kOpen };
  enum class How : bool { kClose, kReset };

  /// Connects; the test fails if that is impossible. `receive_buffer`: of the socket; 0: the
  /// system's default.
  explicit Stream(const net::Endpoint& to, int receive_buffer = 0);
  /// Takes over a connected socket.
  explicit Stream(int fd);
  virtual ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Returns false if the other side takes no more.
  virtual bool Send(std::string_view bytes);
  /// Ends this side's sending; it can still receive.
  virtual void EndSending();
  /// Closes the connection so that the other side sees a reset.
  void Reset();
  void Close();
  /// Ends blocking calls of the owning thread, from any thread. kReset: Close() will then reset the
  /// connection.
  void Wake(How how);

  /// Appends the next bytes to `to`.
  virtual Got Receive(std::string& to);
  /// Appends the next bytes to those that the functions below read.
  Got Receive();
  /// Returns the bytes up to and including `end`; all that came if the connection ends before it.
  std::string ReadUntil(std::string_view end);
  std::string ReadExactly(std::size_t count);
  /// Returns all bytes until the end of the connection.
  std::string ReadRest();
  /// Returns true if a byte can be read now or within `at_most`.
  [[nodiscard]] bool Readable(std::chrono::milliseconds at_most);
  /// Waits for the end of the connection.
  End WaitForEnd(std::chrono::milliseconds at_most = kPatience);

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// How often bytes have been received.
  [[nodiscard]] int reads() const noexcept { return reads_; }

 private:
  void SetOptions();

  std::mutex closing_;  ///< The number of a closed descriptor may be another socket's.
  std::atomic<int> fd_;
  std::string received_;
  int reads_ = 0;
};

}  // namespace tidegate::test
