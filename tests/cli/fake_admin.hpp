// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::cli_test {

/// A question as it came.
struct Question {
  std::string method;
  std::string target;
  std::string head = {};  ///< All of it.
  std::string body = {};
};
struct Reply {
  int status = 200;
  std::string body = {};
};

/// What the admin port of a server answers, canned: a tiny HTTP/1.1 server in this process, on a
/// port of its own on loopback. It shares no code with the real one.
class FakeAdmin {
 public:
  using Handler = std::function<Reply(const Question&)>;
  /// Answers as docs/admin.md shows it, with counts that grow by a hundred decisions a poll.
  FakeAdmin();
  explicit FakeAdmin(Handler handler);
  ~FakeAdmin();
  FakeAdmin(const FakeAdmin&) = delete;
  FakeAdmin& operator=(const FakeAdmin&) = delete;

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// Returns all requests so far.
  [[nodiscard]] std::vector<Question> Questions() const;
  /// Accepts connections without answering, until it is switched back.
  void KeepSilent(bool silent) { silent_ = silent; }
  /// Stops listening.
  void End();

 private:
  void Run();
  void Serve(int connection);

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  int stop_ = -1;
  std::atomic<bool> silent_{false};
  mutable std::mutex mutex_;
  std::vector<Question> questions_;
  std::thread thread_;
};

/// The documented answers. `polls`: number of requests for its status.
[[nodiscard]] Reply Documented(const Question& question, int polls);

}  // namespace tidegate::cli_test
