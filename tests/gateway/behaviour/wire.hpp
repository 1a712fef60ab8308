// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 as the tests see it: the bytes as they came, and what they mean, read without any of the
// code under test.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/fixture.hpp"

namespace tidegate::behaviour {

using service::kPatience;

using Fields = std::vector<std::pair<std::string, std::string>>;

/// The value of the first field of that name, in any case; empty: there is none.
[[nodiscard]] std::string FieldOf(const Fields& fields, std::string_view name);
[[nodiscard]] int CountOf(const Fields& fields, std::string_view name);
/// All values of that name in their order, joined by ", ".
[[nodiscard]] std::string ListOf(const Fields& fields, std::string_view name);

/// A head and a body, of either direction.
struct Message {
  std::string head;  ///< As it came, with the empty line.
  std::string start;
  Fields fields;
  std::string body;   ///< Without its framing.
  Fields trailers;    ///< Behind the last chunk.
  bool whole = true;  ///< All of the body came.

  [[nodiscard]] std::string Field(std::string_view name) const { return FieldOf(fields, name); }
  [[nodiscard]] int Count(std::string_view name) const { return CountOf(fields, name); }
  [[nodiscard]] bool Has(std::string_view name) const { return Count(name) != 0; }
};

struct Request : Message {
  [[nodiscard]] std::string method() const { return start.substr(0, start.find(' ')); }
  [[nodiscard]] std::string target() const;
};

struct Answer : Message {
  int status = 0;  ///< 0: none came; the test has failed already.

  /// The body as JSON, an empty object (and a failed test) if it is none.
  [[nodiscard]] boost::json::object Json() const;
};

/// A blocking socket. Nothing waits longer than kPatience.
class Socket {
 public:
  explicit Socket(int fd) noexcept;
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// False: the other side takes no more.
  bool Send(std::string_view bytes);
  /// What there is, waiting for the first byte. False: nothing more comes.
  bool Receive();
  void EndSending();
  /// As a process that is killed with bytes unread.
  void Reset();
  void Close();
  /// From any thread: whoever waits for it wakes up. kReset: and its close will reset it.
  enum class How : bool { kClose, kReset };
  void Wake(How how);

  /// Up to and with `end`; what came if the other side ends before that.
  std::string ReadUntil(std::string_view end);
  std::string ReadExactly(std::size_t count);
  /// All until the end.
  std::string ReadRest();
  /// Whether a byte is there or comes in that time.
  [[nodiscard]] bool Readable(std::chrono::milliseconds at_most);

  /// Fills in what the head says and the framing of `message` brings.
  bool ReadHead(Message& message);
  void ReadLength(Message& message, std::size_t length);
  void ReadChunks(Message& message);

 private:
  std::mutex closing_;  ///< A descriptor that was closed is another's.
  std::atomic<int> fd_;
  std::string received_;
};

/// Something that one thread waits for and another tells.
class Signal {
 public:
  void Give();
  /// False: nobody gave it in kPatience.
  [[nodiscard]] bool Wait();
  [[nodiscard]] bool given() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool given_ = false;
};

/// Whether it becomes true within kPatience.
[[nodiscard]] bool Soon(const std::function<bool()>& condition);

/// Bytes that no compression or repetition explains, the same for each seed.
[[nodiscard]] std::string RandomBytes(std::size_t count, unsigned seed = 1);
/// In chunks of that size.
[[nodiscard]] std::string Chunked(std::string_view body, std::size_t chunk,
                                  std::string_view trailers = {});

}  // namespace tidegate::behaviour
