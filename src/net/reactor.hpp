// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "net/deadlines.hpp"
#include "net/http_date.hpp"
#include "net/http_exchange.hpp"
#include "net/out_buffer.hpp"

namespace tidegate::net {

/// One thread with one event loop, and what its connections share. Everything on it is touched by
/// its own thread only, but for Post and Stop.
class Reactor {
 public:
  /// `deadlines`: how long each kind of them waits.
  explicit Reactor(const std::array<Deadlines::Duration, Deadlines::kKinds>& deadlines);
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

  /// Runs the loop on the calling thread until Stop. `core`: pinned to it where given.
  void Run(std::optional<int> core);
  /// Ends Run; what is open then is closed when the reactor goes. Thread-safe.
  void Stop();
  /// Runs `task` on the reactor's thread, soon. Thread-safe.
  void Post(std::function<void()> task);

  [[nodiscard]] boost::asio::io_context& context() noexcept { return context_; }
  [[nodiscard]] Deadlines& deadlines() noexcept { return deadlines_; }
  [[nodiscard]] HttpDate& date() noexcept { return date_; }
  /// Where answers are put together before they are sent: used between two waits only.
  [[nodiscard]] OutBuffer& out() noexcept { return out_; }
  [[nodiscard]] HttpExchangePool& exchanges() noexcept { return exchanges_; }

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Deadlines deadlines_;
  HttpDate date_;
  OutBuffer out_;
  HttpExchangePool exchanges_;
};

}  // namespace tidegate::net
