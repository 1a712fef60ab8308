// SPDX-License-Identifier: Apache-2.0
#include "cli/http_ask.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "cli/stream.hpp"
#include "cli/tls_trouble.hpp"
#include "net/body_reader.hpp"
#include "net/http1_response.hpp"
#include "rules/duration.hpp"

namespace tidegate::cli {
namespace {

/// A thousand rules with their matches are some hundred KiB.
constexpr std::size_t kMostAnswerBytes = 64u << 20;

/// What servers say, with a 400, to whom speaks plain HTTP where they want TLS: ours; those of
/// nginx and of Go, which may stand before one.
constexpr std::array<std::string_view, 3> kWantTls{"this port speaks TLS",
                                                   "plain HTTP request was sent to HTTPS port",
                                                   "HTTP request to an HTTPS server"};
/// The others send an alert: a record of TLS.
constexpr std::string_view kAlert = "\x15\x03";

std::unexpected<Error> Fail(const ServerAddress& address, const std::string& why) {
  return std::unexpected(Error{ErrorCode::kNetwork, address.Told() + ": " + why});
}

std::string NoAnswer(const Patience& patience, const HttpQuestion& question) {
  return "no answer within " + FormatDuration(patience.timeout) +
         (question.changes ? ": the change may or may not have been made" : "") +
         "; wait longer with --timeout";
}

/// Reads until the other side closes: that is what was asked for. kBytes: there is no end.
Stream::Got ReceiveAll(Stream& stream, std::string& bytes) {
  for (;;) {
    const Stream::Got got = stream.Receive(bytes);
    if (got != Stream::Got::kBytes || bytes.size() > kMostAnswerBytes) return got;
  }
}

enum class Form : std::uint8_t { kWhole, kPart, kForeign };

/// `end`: how the connection ended. Without a length the end of a body is that of the connection,
/// if somebody did not just cut it.
Form ParseAnswer(std::string& bytes, Stream::Got end, HttpAnswer& answer) {
  const auto head = std::make_unique<net::ResponseHead>();
  std::string_view rest = bytes;
  do {  // Interim answers come before.
    net::ResponseParser parser;
    const net::Parsed parsed = parser.Parse(rest, {}, net::AnswerTo::kOther, *head);
    if (parsed == net::Parsed::kRefused) return Form::kForeign;
    if (parsed == net::Parsed::kMore) return Form::kPart;
    rest.remove_prefix(parser.consumed());
  } while (head->status < 200);
  answer.status = head->status;
  net::BodyReader reader;
  reader.Begin(head->body, head->content_length);
  const std::size_t at = bytes.size() - rest.size();
  std::span<char> raw(bytes.data() + at, rest.size());
  for (;;) {
    const net::Parsed parsed = reader.Read(raw);
    if (parsed == net::Parsed::kRefused) return Form::kForeign;
    answer.body += reader.data();
    if (parsed == net::Parsed::kDone) return Form::kWhole;
    if (reader.eaten() == 0) {
      return reader.EndsAtClose() && end == Stream::Got::kEnd ? Form::kWhole : Form::kPart;
    }
    raw = raw.subspan(reader.eaten());
  }
}

/// Why there is no answer in what came.
std::unexpected<Error> FailToRead(const ServerAddress& address, const Stream& stream,
                                  std::string_view bytes, Form form, const Patience& patience,
                                  const Keyring& keyring) {
  if (!stream.problem().empty()) {
    if (stream.tls() == nullptr) return Fail(address, stream.problem());
    return std::unexpected(TroubleOf(*stream.tls(), address, keyring, patience));
  }
  if (!address.tls && bytes.starts_with(kAlert)) {
    return std::unexpected(WantsTls(address, patience));
  }
  if (form == Form::kPart && !bytes.empty()) {
    return Fail(address, "the connection was cut before the answer's end");
  }
  if (address.tls && bytes.empty())
    return Fail(address, "it ends the connection without an answer");
  return Fail(address,
              std::string("what answers there does not speak HTTP/1.1; is it another program") +
                  (address.tls ? "?" : ", or does it want TLS (https://)?"));
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
                       const Patience& patience, const Keyring& keyring) {
  const Deadline deadline(patience);
  auto socket = Dial(address, patience, deadline);
  if (!socket) return std::unexpected(socket.error());
  Stream stream(std::move(*socket), deadline);
  if (address.tls) {
    const auto shaken = stream.Secure(*keyring.client, address.CertifiedName());
    if (shaken == Stream::Shaken::kLate) {
      return Fail(address, "no TLS handshake within " + FormatDuration(patience.timeout) +
                               "; does it speak TLS? Else wait longer with --timeout");
    }
    if (shaken == Stream::Shaken::kFailed) {
      if (stream.tls() == nullptr) return Fail(address, "there is no memory for TLS");
      return std::unexpected(TroubleOf(*stream.tls(), address, keyring, patience));
    }
  }
  if (!stream.Send(RequestText(address, question, true)))
    return Fail(address, NoAnswer(patience, question));
  std::string bytes;
  const Stream::Got end = ReceiveAll(stream, bytes);
  if (end == Stream::Got::kBytes) return Fail(address, "the answer has no end");
  if (end == Stream::Got::kLate) return Fail(address, NoAnswer(patience, question));
  HttpAnswer answer;
  const Form form = ParseAnswer(bytes, end, answer);
  if (form != Form::kWhole) return FailToRead(address, stream, bytes, form, patience, keyring);
  const auto said = [&](std::string_view text) { return answer.body.contains(text); };
  if (!address.tls && answer.status == 400 && std::ranges::any_of(kWantTls, said)) {
    return std::unexpected(WantsTls(address, patience));
  }
  return answer;
}

}  // namespace tidegate::cli
