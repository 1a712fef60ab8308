// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tidegate::cli_test {

/// A request as it was received.
struct ReceivedRequest {
  std::string method;
  std::string target;
  std::string head = {};  ///< The request line and all header fields, as received.
  std::string body = {};
};
struct Reply {
  int status = 200;
  std::string body = {};
};

/// A fake of a server's admin listener with fixed responses: a small HTTP/1.1 server in this
/// process, on a free port of the loopback address. It shares no code with the real server.
class FakeAdmin {
 public:
  using Handler = std::function<Reply(const ReceivedRequest&)>;
  /// Responds as docs/admin.md documents, with counts that grow by a hundred decisions at each
  /// request.
  FakeAdmin();
  explicit FakeAdmin(Handler handler);
  ~FakeAdmin();
  FakeAdmin(const FakeAdmin&) = delete;
  FakeAdmin& operator=(const FakeAdmin&) = delete;

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// Returns all requests so far.
  [[nodiscard]] std::vector<ReceivedRequest> Requests() const;
  /// While `silent`, accepts connections but sends no responses.
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
  std::vector<ReceivedRequest> requests_;
  std::thread thread_;
};

/// Returns the documented response. `polls`: number of status requests so far.
[[nodiscard]] Reply Documented(const ReceivedRequest& request, int polls);

}  // namespace tidegate::cli_test
