// SPDX-License-Identifier: Apache-2.0
#include "gateway/behaviour/scripted_upstream.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tidegate::behaviour {
namespace {

/// Interval, in milliseconds, at which the accepting thread checks whether it must stop.
constexpr int kLookMillis = 20;

}  // namespace

// --- Connection -----------------------------------------------------------------

bool ScriptedUpstream::Connection::ReadHead(HttpRequest& request) {
  request = {};
  if (!test::ReadHead(*this, request)) return false;
  upstream_.Note(request);
  return true;
}

bool ScriptedUpstream::Connection::Read(HttpRequest& request) {
  if (!ReadHead(request)) return false;
  ReadBody(request);
  return request.whole;
}

bool ScriptedUpstream::Connection::WaitForEnd() {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    if (fd() < 0 || Receive() != Got::kBytes) return std::chrono::steady_clock::now() < end;
  }
  return false;
}

// --- ScriptedUpstream -----------------------------------------------------------

ScriptedUpstream::ScriptedUpstream(Handler handler) : handler_(std::move(handler)) {
  Listen();
  acceptor_ = std::thread([this] { Accept(); });
}

ScriptedUpstream::~ScriptedUpstream() {
  stop_ = true;
  acceptor_.join();
  EndConnections();
  for (std::thread& thread : threads_) thread.join();
  if (listener_ >= 0) ::close(listener_);
}

void ScriptedUpstream::Listen() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port_);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(fd, 512), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
  listener_ = fd;
}

void ScriptedUpstream::StopListening() {
  const std::lock_guard lock(mutex_);
  // shutdown() wakes the accepting thread. With close() alone the port would stay open until that
  // thread stops waiting on it.
  ::shutdown(listener_, SHUT_RDWR);
  ::close(listener_.exchange(-1));
  for (const auto& socket : sockets_) socket->Wake(test::Stream::How::kClose);
}

void ScriptedUpstream::ListenAgain() {
  const std::lock_guard lock(mutex_);
  Listen();
}

void ScriptedUpstream::Accept() {
  while (!stop_) {
    pollfd poll{.fd = listener_, .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, kLookMillis) != 1) continue;
    const std::lock_guard lock(mutex_);
    if (listener_ < 0) continue;
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    sockets_.push_back(std::make_unique<Connection>(*this, fd, connections_++));
    ++open_;
    threads_.emplace_back([this, connection = sockets_.back().get(), handler = handler_] {
      handler(*connection);
      const std::lock_guard ending(mutex_);
      std::erase_if(sockets_, [&](const auto& own) { return own.get() == connection; });
      --open_;
    });
  }
}

void ScriptedUpstream::EndConnections(test::Stream::How how) {
  const std::lock_guard lock(mutex_);
  for (const auto& socket : sockets_) socket->Wake(how);
}

void ScriptedUpstream::Use(Handler handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

void ScriptedUpstream::Note(const HttpRequest& request) {
  const std::lock_guard lock(mutex_);
  seen_.push_back(request);
  ++requests_;
}

std::vector<HttpRequest> ScriptedUpstream::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

HttpRequest ScriptedUpstream::last() const {
  const std::lock_guard lock(mutex_);
  return seen_.empty() ? HttpRequest{} : seen_.back();
}

ScriptedUpstream::Handler ScriptedUpstream::Each(Answering answer) {
  return [answer = std::move(answer)](Connection& connection) {
    HttpRequest request;
    while (connection.Read(request)) {
      const std::string text = answer(request);
      if (text.empty() || !connection.Send(text)) return;
    }
  };
}

ScriptedUpstream::Handler ScriptedUpstream::Ok(std::string_view body) {
  return Each([text = Http("200 OK", {}, body)](const HttpRequest&) { return text; });
}

std::string Http(std::string_view status_and_reason, std::string_view lines,
                 std::string_view body) {
  std::string text = "HTTP/1.1 ";
  text.append(status_and_reason).append("\r\n").append(lines);
  text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
  return text.append(body);
}

}  // namespace tidegate::behaviour
