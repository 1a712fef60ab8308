// SPDX-License-Identifier: Apache-2.0
#include "gateway/case_runner.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "support/ports.hpp"

namespace tidegate::gateway_test {
namespace {

/// Number of exchanges that run at the same time: more than servers leave waiting. With as many
/// connections behind each of three proxies, all in one process, this stays below the usual limit
/// of 1,024 descriptors.
constexpr std::size_t kAtATime = 100;
constexpr std::chrono::milliseconds kSilence{5000};

class Client {
 public:
  Client(int port, const Exchange& exchange, Seen& seen)
      : fd_(test::ConnectTo(port, exchange.from.c_str())),
        exchange_(&exchange),
        seen_(&seen),
        unsent_(exchange.send) {
    if (fd_ < 0) return;
    fcntl(fd_, F_SETFL, O_NONBLOCK);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  [[nodiscard]] bool done() const { return fd_ < 0; }
  [[nodiscard]] pollfd Polled() const {
    return {fd_, static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
  }

  void Move(short events) {
    if ((events & POLLOUT) != 0) Send();
    if ((events & ~POLLOUT) != 0) Receive();
  }

  void End(Seen::End end) {
    if (fd_ < 0) return;
    close(fd_);
    fd_ = -1;
    seen_->end = end;
    seen_->rest = received_;
  }

 private:
  void Send() {
    const ssize_t sent = send(fd_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    // A server that rejects a request may stop reading the rest of it; its response must still be
    // read.
    if (sent < 0) unsent_ = errno == EAGAIN ? unsent_ : std::string_view();
    if (sent > 0) unsent_.remove_prefix(static_cast<std::size_t>(sent));
  }

  void Receive() {
    std::array<char, 65536> buffer;
    const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0) received_.append(buffer.data(), static_cast<std::size_t>(got));
    // A reset does not mark the end of a body, so got < 0 (reset) differs from got == 0 (close).
    while (fd_ >= 0 && TakeAnswer(got == 0)) {
    }
    if (got <= 0) End(Seen::End::kClosed);
  }

  /// Moves the next complete response from `received_` to the result. Returns false if there is
  /// none.
  bool TakeAnswer(bool closed) {
    if (received_.empty()) return false;
    const bool after_head = exchange_->after_head && seen_->answers.empty();
    Message answer = ReadAnswer(received_, {.after_head = after_head, .closed = closed});
    seen_->last = answer;
    seen_->why = answer.why;
    if (answer.frame != Frame::kWhole) return false;
    received_.erase(0, answer.size);
    seen_->last = {};
    if (answer.status < 200) return true;
    const bool last = exchange_->until.empty() || answer.Field("x-answer-to") == exchange_->until;
    seen_->answers.push_back(std::move(answer));
    if (last) End(Seen::End::kAnswered);
    return true;
  }

  int fd_ = -1;
  const Exchange* exchange_;
  Seen* seen_;
  std::string_view unsent_;
  std::string received_;
};

/// Sends and receives what is possible. Returns false if no exchange made progress for kSilence.
bool MoveAll(std::vector<Client>& clients) {
  std::vector<pollfd> polled;
  for (const Client& client : clients) polled.push_back(client.Polled());
  const int ready = poll(polled.data(), polled.size(), static_cast<int>(kSilence.count()));
  if (ready < 0) return errno == EINTR;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (polled[i].revents != 0) clients[i].Move(polled[i].revents);
  }
  return ready > 0;
}

}  // namespace

std::string Seen::Text() const {
  std::string text = "answered";
  for (const Message& answer : answers) {
    text += " " + std::to_string(answer.status) + " " + answer.Field("x-answer-to") + ",";
  }
  text += end == End::kAnswered ? " all" : end == End::kClosed ? " then closed" : " then silent";
  return rest.empty() ? text : text + ", with " + Printable(rest.substr(0, 300)) + " behind it";
}

std::string Numbered(std::string text, std::size_t index) {
  for (std::size_t at = 0; (at = text.find("$NNN", at)) != std::string::npos;) {
    text.replace(at, 4, std::to_string(kFirstNumber + index));
  }
  return text;
}

std::vector<Seen> RunAll(int port, const std::vector<Exchange>& exchanges) {
  std::vector<Seen> seen(exchanges.size());
  std::vector<Client> clients;
  std::size_t next = 0;
  while (next < exchanges.size() || !clients.empty()) {
    for (; next < exchanges.size() && clients.size() < kAtATime; ++next) {
      clients.emplace_back(port, exchanges[next], seen[next]);
    }
    if (!MoveAll(clients)) {
      for (Client& client : clients) client.End(Seen::End::kSilent);
    }
    std::erase_if(clients, [](const Client& client) { return client.done(); });
  }
  return seen;
}

Seen RunOne(int port, const Exchange& exchange) { return RunAll(port, {exchange}).front(); }

}  // namespace tidegate::gateway_test
