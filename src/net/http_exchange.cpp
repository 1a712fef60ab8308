// SPDX-License-Identifier: Apache-2.0
#include "net/http_exchange.hpp"

#include <algorithm>
#include <ctime>

#include "base/utf8.hpp"
#include "net/http_listener.hpp"

namespace tidegate::net {

const Peer& HttpExchange::peer() const noexcept { return connection_->peer_; }

void HttpExchange::CloseAfterAnswer() noexcept { connection_->last_ = connection_->linger_ = true; }

std::string_view HttpDate() noexcept {
  thread_local std::time_t written = -1;
  thread_local std::array<char, 30> text{};
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec != written) {
    std::tm utc{};
    gmtime_r(&now.tv_sec, &utc);
    // The names are English, because the program keeps the locale "C".
    (void)std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
    written = now.tv_sec;
  }
  return {text.data(), 29};
}

std::string_view ReasonPhrase(int status) noexcept {
  struct Phrase {
    int status;
    std::string_view text;
  };
  // Frequent statuses come first.
  static constexpr Phrase kPhrases[] = {
      {200, "OK"},
      {429, "Too Many Requests"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  };
  const auto* const found = std::ranges::find(kPhrases, status, &Phrase::status);
  return found == std::end(kPhrases) ? "Unknown" : found->text;
}

namespace {

void BeginHead(OutBuffer& out, int status) {
  if (status == 200) [[likely]] {
    out << "HTTP/1.1 200 OK\r\nX-Content-Type-Options: nosniff\r\nDate: ";
  } else {
    out << "HTTP/1.1 " << status << ' ' << ReasonPhrase(status)
        << "\r\nX-Content-Type-Options: nosniff\r\nDate: ";
  }
  out << HttpDate() << "\r\n";
}

void WriteEscaped(OutBuffer& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    out << '\\' << c;
  } else if (c == '\n') {
    out << R"(\n)";
  } else {
    out << R"(\u00)" << kHex[(c >> 4) & 15] << kHex[c & 15];
  }
}

}  // namespace

OutBuffer& HttpExchange::Begin(int status) {
  HttpConnection& connection = *connection_;
  OutBuffer& out = connection.channel_.out();
  connection.listener_.answers().Add(status);
  connection.last_ |= connection.draining_;
  BeginHead(out, status);
  if (connection.last_) {
    out << "Connection: close\r\n";
  } else if (head_.minor == 0) {
    out << "Connection: keep-alive\r\n";
  }
  return out;
}

void HttpExchange::End(std::string_view content_type, std::string_view body) {
  OutBuffer& out = connection_->channel_.out();
  if (!content_type.empty()) out << "Content-Type: " << content_type << "\r\n";
  out << "Content-Length: " << body.size() << "\r\n\r\n";
  if (head_.method != "HEAD") out << body;
  connection_->FinishExchange();
}

void WriteJsonText(OutBuffer& out, std::string_view text) {
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size()) {
      const auto c = static_cast<unsigned char>(text[plain]);
      if (c < 0x20 || c >= 0x7F || c == '"' || c == '\\') break;
      ++plain;
    }
    out << text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return;
    const std::size_t length = Utf8Length(text);
    if (length == 0) {
      out << R"(\ufffd)";
      text.remove_prefix(1);
      continue;
    }
    if (length == 1) {
      WriteEscaped(out, text[0]);
    } else {
      out << text.substr(0, length);
    }
    text.remove_prefix(length);
  }
}

void WriteProblem(OutBuffer& body, int status, std::string_view detail, std::string_view pointer) {
  body << R"({"type":"about:blank","title":")" << ReasonPhrase(status) << R"(","status":)" << status
       << R"(,"detail":")";
  WriteJsonText(body, detail);
  if (!pointer.empty()) {
    body << R"(","pointer":")";
    WriteJsonText(body, pointer);
  }
  body << "\"}\n";
}

void WriteRefusal(OutBuffer& out, const HttpRefusal& refusal, RefusalBody sent) {
  OutBuffer body;
  WriteProblem(body, refusal.status, refusal.reason);
  BeginHead(out, refusal.status);
  out << "Connection: close\r\nCache-Control: no-store\r\n"
         "Content-Type: application/problem+json\r\nContent-Length: "
      << body.size() << "\r\n\r\n";
  if (sent == RefusalBody::kSent) out << body.view();
}

void AnswerProblem(HttpExchange& exchange, int status, std::string_view detail,
                   std::string_view pointer, std::string_view field_lines) {
  OutBuffer body;
  WriteProblem(body, status, detail, pointer);
  exchange.Begin(status) << "Cache-Control: no-store\r\n" << field_lines;
  exchange.End("application/problem+json", body.view());
}

}  // namespace tidegate::net
