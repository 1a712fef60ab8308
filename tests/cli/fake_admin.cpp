// SPDX-License-Identifier: Apache-2.0
#include "cli/fake_admin.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <memory>

namespace tidegate::cli_test {
namespace {

/// Receives until the head and the body are complete. Returns false if the client closes the
/// connection before.
bool Receive(int connection, ReceivedRequest& request) {
  std::string bytes;
  std::size_t head = std::string::npos;
  std::size_t length = 0;
  char chunk[4096];
  while (head == std::string::npos || bytes.size() < head + 4 + length) {
    const ssize_t got = recv(connection, chunk, sizeof chunk, 0);
    if (got <= 0) return false;
    bytes.append(chunk, static_cast<std::size_t>(got));
    head = bytes.find("\r\n\r\n");
    if (head == std::string::npos) continue;
    const std::size_t at = bytes.find("Content-Length: ");
    if (at < head) std::from_chars(bytes.data() + at + 16, bytes.data() + head, length);
  }
  request.head = bytes.substr(0, head + 2);
  request.body = bytes.substr(head + 4);
  const std::size_t blank = bytes.find(' ');
  request.method = bytes.substr(0, blank);
  request.target = bytes.substr(blank + 1, bytes.find(' ', blank + 1) - blank - 1);
  return true;
}

std::string Status(int polls) {
  const auto times = [&](int each) { return std::to_string(polls * each); };
  return R"({"version":"0.1.0","node":"k3Jx0aB1","uptime_ms":)" + times(1000) +
         R"(,"threads":2,"draining":false,"store":{"kind":"redis","mode":"single",)"
         R"("url":"redis://127.0.0.1:6379","connected":2,"nodes":2,"breaker":"closed","waiting":0,)"
         R"("batches":1000,"calls":9000,"entries":4000,"cache_hits":17,"latency":{"count":)" +
         times(100) + R"(,"sum":0.4,"buckets":[[0.000064,)" + times(10) + R"(],[0.000128,)" +
         times(90) + R"(],[null,)" + times(100) +
         R"(]]}},"memory":{"tracked":12,"overflowed":0,"reclaimed":0,"repaired":0,"list_bytes":0},)"
         R"("fleet":{"nodes":3,"key_mismatches":0},)"
         R"("config":{"rules":2,"applied_ms":1700000000000,"reloads":0,"refused":0},)"
         R"("overrides":{"count":2,"age_ms":120},"requests":{"allowed":)" +
         times(40) + R"(,"denied":)" + times(10) + R"(},"decisions":{"allowed":)" + times(80) +
         R"(,"denied":)" + times(20) +
         R"(,"shadow_allowed":0,"shadow_denied":0,"banned":0,"exempted":0},"decided_by":{"store":)" +
         times(85) + R"(,"cache":)" + times(15) +
         R"(,"local":0,"open":0,"closed":0,"operator":0},"failures":{"timeout":0,"breaker_open":0},)"
         R"("latency":{"count":)" +
         times(100) + R"(,"sum":0.5,"buckets":[[0.000001,)" + times(4) + R"(],[0.000002,)" +
         times(90) + R"(],[null,)" + times(100) +
         R"(]]},"listeners":[{"listener":"api","connections":4,"accepted":9,"requests":1020,"refused":0,)"
         R"("shed":0}]})";
}

std::string Rules(int polls) {
  const auto times = [&](int each) { return std::to_string(polls * each); };
  return R"({"rules":[{"rule":"per-key","match":{"host":["api.example.com"],"path":["/v1/**"],)"
         R"("method":["GET"],"header":{"x-a":"b*"},"client_ip":["10.0.0.0/8"]},)"
         R"("per":"header:x-api-key | client_ip","algorithm":"token_bucket","limit":"100/s",)"
         R"("quota":"100/s, burst 200","burst":200,"capacity":200,"mode":"enforce","on_failure":"local","cost":"1",)"
         R"("overrides":1,"decisions":{"allowed":)" +
         times(80) + R"(,"denied":)" + times(20) +
         R"(,"shadow_allowed":0,"shadow_denied":0,"banned":0,"exempted":0}},)"
         R"({"rule":"logins","match":{},"per":"client_ip","algorithm":"sliding_log",)"
         R"("limit":"5/m","quota":"5/m","capacity":5,"mode":"shadow","on_failure":"open","cost":"1",)"
         R"("overrides":0,"decisions":{"allowed":0,"denied":0}}]})";
}

constexpr const char* kHot =
    R"({"window_ms":14000,"names":"hashed",)"
    R"("requests":{"total":90000,"error":12,"keys":[{"rule":"per-key","key":"header:x-api-key=~k3Jx0","count":40000,"error":12}]},)"
    R"("denials":{"total":100,"error":0,"keys":[{"rule":"per-key","key":"header:x-api-key=~denied","count":60,"error":0}]},)"
    R"("cost":{"total":90000,"error":12,"keys":[]}})";
constexpr const char* kOverrides =
    R"({"overrides":[{"rule":"per-key","key":"header:x-api-key=~k3Jx0","kind":"ban","reason":"scraping","by":"alice",)"
    R"("since_ms":1700000000000,"expires_ms":1700003600000,"left_ms":3599000,"in_force":true},)"
    R"({"rule":"gone","key":"client_ip=192.0.2.1","kind":"quota","limit":"5/s","quota":"5/s, burst 10","burst":10,"reason":"","by":"loopback",)"
    R"("since_ms":1700000000000,"in_force":false,"why":"there is no rule 'gone'"}]})";
constexpr const char* kAudit =
    R"({"entries":[{"time_ms":1700000000000,"node":"k3Jx0aB1","by":"alice","from":"127.0.0.1","action":"ban",)"
    R"("rule":"per-key","key":"header:x-api-key=~k3Jx0","detail":"for 1h: scraping","applied":true},)"
    R"x({"time_ms":1700000000000,"node":"k3Jx0aB1","by":"(unknown)","from":"203.0.113.7","action":"auth_failed",)x"
    R"("rule":"","key":"","detail":"12 failures: api wrong 12","applied":false}]})";
constexpr const char* kExplain =
    R"({"allowed":false,"status":429,"outcome":"rules","rule":"per-key",)"
    R"("request":{"method":"GET","host":"api.example.com","path":"/v1/x","client_ip":"203.0.113.7"},"rules":[)"
    R"({"rule":"per-key","matched":true,"match":{"path":["/v1/**"],"header":{"x-tier":"gold"}},"per":"header:x-api-key | client_ip","counted_by":"header:x-api-key","key":"header:x-api-key=~k3Jx0",)"
    R"("stored_as":"tg:tb:per-key:{header:x-api-key=~k3Jx0}","algorithm":"token_bucket","limit":"100/s","quota":"100/s, burst 200","capacity":200,)"
    R"("cost":1,"mode":"enforce","on_failure":"local","allowed":false,"decided_by":"store","reason":"quota","before":{"remaining":0,"reset_after_ms":2000},)"
    R"("after":{"remaining":0},"retry_after_ms":10,"override":{"kind":"quota","limit":"100/s","quota":"100/s, burst 200","burst":200,)"
    R"("reason":"partner","by":"alice","left_ms":3600000}},)"
    R"({"rule":"logins","matched":false,"why":"its method is POST, the request's is GET"}],"considered":2,"left_out":0})";
constexpr const char* kInspect =
    R"({"rule":"per-key","key":"header:x-api-key=~k3Jx0","shown_as":"header:x-api-key=~k3Jx0","stored_as":"tg:tb:x",)"
    R"("algorithm":"token_bucket","limit":"100/s","quota":"100/s, burst 200","capacity":200,"tracked":true,"allowed":true,"remaining":150,)"
    R"("reset_after_ms":500,"state":[{"name":"tokens","value":"150"},{"name":"last_refill","value":"17"}],"override":null})";
constexpr const char* kChange =
    R"({"applied":true,"rule":"per-key","key":"header:x-api-key=~k3Jx0","expires_ms":1700000000000})";

}  // namespace

Reply Documented(const ReceivedRequest& request, int polls) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (request.method == "GET") {
    if (path == "/v1/status") return {200, Status(polls)};
    if (path == "/v1/rules") return {200, Rules(polls)};
    if (path == "/v1/hot") return {200, kHot};
    if (path == "/v1/overrides") return {200, kOverrides};
    if (path == "/v1/audit") return {200, kAudit};
  } else {
    if (path == "/v1/explain") return {200, kExplain};
    if (path == "/v1/inspect") return {200, kInspect};
    for (const char* change : {"/v1/reset", "/v1/grant", "/v1/refund", "/v1/ban", "/v1/allow",
                               "/v1/override", "/v1/lift"}) {
      if (path == change) return {200, kChange};
    }
  }
  return {404, R"({"title":"Not Found","status":404,"detail":"there is nothing here"})"};
}

FakeAdmin::FakeAdmin()
    : FakeAdmin([polls = std::make_shared<int>(0)](const ReceivedRequest& request) {
        if (request.target == "/v1/status") ++*polls;
        return Documented(request, *polls);
      }) {}

FakeAdmin::FakeAdmin(Handler handler) : handler_(std::move(handler)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  (void)listen(listener_, 16);
  socklen_t size = sizeof address;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  stop_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Run(); });
}

FakeAdmin::~FakeAdmin() {
  End();
  close(stop_);
}

void FakeAdmin::End() {
  if (!thread_.joinable()) return;
  (void)eventfd_write(stop_, 1);
  thread_.join();
  close(listener_);
}

std::vector<ReceivedRequest> FakeAdmin::Requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void FakeAdmin::Run() {
  std::vector<int> unanswered;
  for (;;) {
    pollfd polled[] = {{listener_, POLLIN, 0}, {stop_, POLLIN, 0}};
    poll(polled, 2, -1);
    if (polled[1].revents != 0) break;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    if (silent_) {
      unanswered.push_back(connection);
      continue;
    }
    Serve(connection);
    close(connection);
  }
  for (const int connection : unanswered) close(connection);
}

void FakeAdmin::Serve(int connection) {
  const timeval patience{.tv_sec = 5, .tv_usec = 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ReceivedRequest request;
  if (!Receive(connection, request)) return;
  const Reply reply = handler_(request);
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  const std::string bytes = "HTTP/1.1 " + std::to_string(reply.status) +
                            " X\r\nContent-Type: application/json\r\nContent-Length: " +
                            std::to_string(reply.body.size()) + "\r\nConnection: close\r\n\r\n" +
                            reply.body;
  (void)send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

}  // namespace tidegate::cli_test
