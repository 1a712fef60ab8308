// SPDX-License-Identifier: Apache-2.0
#include "cli/http_ask.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <system_error>

#include "net/body_reader.hpp"
#include "net/http1_response.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {
namespace {

/// A thousand rules with their matches are some hundred KiB.
constexpr std::size_t kMostBytes = 64u << 20;

std::unexpected<Error> Fail(const ServerAddress& address, const std::string& why) {
  return std::unexpected(Error{ErrorCode::kNetwork, address.Text() + ": " + why});
}

std::string NoAnswer(const Patience& patience) {
  return "no answer within " + FormatDuration(patience.timeout) + "; wait longer with --timeout";
}

/// Empty, or why not.
std::string SendAll(int fd, std::string_view bytes, const Patience& patience,
                    const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!deadline.Wait(fd, POLLOUT)) return NoAnswer(patience);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return {};  // It may have answered before it closed.
    } else if (errno != EINTR) {
      return std::generic_category().message(errno);
    }
  }
  return {};
}

/// Reads until the other side closes: that is what was asked for. Empty, or why not.
std::string ReceiveAll(int fd, std::string& bytes, const Patience& patience,
                       const Deadline& deadline) {
  std::array<char, 16384> chunk;
  for (;;) {
    const ssize_t got = recv(fd, chunk.data(), chunk.size(), 0);
    if (got > 0) {
      bytes.append(chunk.data(), static_cast<std::size_t>(got));
      if (bytes.size() > kMostBytes) return "the answer has no end";
    } else if (got == 0 || errno == ECONNRESET) {
      return {};
    } else if (errno == EAGAIN) {
      if (!deadline.Wait(fd, POLLIN)) return NoAnswer(patience);
    } else if (errno != EINTR) {
      return std::generic_category().message(errno);
    }
  }
}

bool ParseAnswer(std::string& bytes, HttpAnswer& answer) {
  const auto head = std::make_unique<net::ResponseHead>();
  std::string_view rest = bytes;
  do {  // Interim answers come before.
    net::ResponseParser parser;
    if (parser.Parse(rest, {}, net::AnswerTo::kOther, *head) != net::Parsed::kDone) return false;
    rest.remove_prefix(parser.consumed());
  } while (head->status < 200);
  answer.status = head->status;
  net::BodyReader reader;
  reader.Begin(head->body, head->content_length);
  const std::size_t at = bytes.size() - rest.size();
  std::span<char> raw(bytes.data() + at, rest.size());
  for (;;) {
    const net::Parsed parsed = reader.Read(raw);
    if (parsed == net::Parsed::kRefused) return false;
    answer.body += reader.data();
    if (parsed == net::Parsed::kDone) return true;
    if (reader.eaten() == 0) return reader.EndsAtClose();
    raw = raw.subspan(reader.eaten());
  }
}

}  // namespace

std::string RequestText(const ServerAddress& address, const HttpQuestion& question, bool close) {
  std::string text =
      question.method + " " + question.target + " HTTP/1.1\r\nHost: " + address.Text() + "\r\n";
  if (!question.token.empty()) text += "Authorization: Bearer " + question.token + "\r\n";
  if (close) text += "Connection: close\r\n";
  if (question.method != "GET") {
    text += "Content-Type: application/json\r\nContent-Length: " +
            std::to_string(question.body.size()) + "\r\n";
  }
  return text + "\r\n" + (question.method == "GET" ? "" : question.body);
}

Result<HttpAnswer> Ask(const ServerAddress& address, const HttpQuestion& question,
                       const Patience& patience) {
  const Deadline deadline(patience);
  const auto socket = Dial(address, patience, deadline);
  if (!socket) return std::unexpected(socket.error());
  std::string bytes;
  std::string why =
      SendAll(socket->get(), RequestText(address, question, true), patience, deadline);
  if (why.empty()) why = ReceiveAll(socket->get(), bytes, patience, deadline);
  if (!why.empty()) return Fail(address, why);
  HttpAnswer answer;
  if (!ParseAnswer(bytes, answer)) {
    return Fail(address,
                "what answers there does not speak HTTP/1.1 to its end; is it another program, or "
                "does it want TLS?");
  }
  return answer;
}

}  // namespace tidegate::cli
