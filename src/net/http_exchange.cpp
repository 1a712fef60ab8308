// SPDX-License-Identifier: Apache-2.0
#include "net/http_exchange.hpp"

#include "net/http_connection.hpp"

namespace tidegate::net {

std::unique_ptr<HttpExchange> HttpExchangePool::Take() {
  if (free_.empty()) {
    free_.reserve(made_ + 1);  // So that Give cannot fail.
    auto made = std::make_unique<HttpExchange>();
    ++made_;
    return made;
  }
  auto exchange = std::move(free_.back());
  free_.pop_back();
  return exchange;
}

void HttpExchangePool::Give(std::unique_ptr<HttpExchange> exchange) noexcept {
  exchange->aborted_ = nullptr;
  exchange->body_ = {};
  exchange->memory_.release();
  free_.push_back(std::move(exchange));
}

void HttpExchangePool::Delete() noexcept {
  made_ -= free_.size() - kKept;
  free_.resize(kKept);
}

const Peer& HttpExchange::peer() const noexcept { return connection_->peer(); }

void HttpExchange::CloseAfterAnswer() noexcept { connection_->CloseAfterAnswer(); }

OutBuffer& HttpExchange::Begin(int status) { return connection_->BeginAnswer(status); }

void HttpExchange::End(std::string_view content_type, std::string_view body) {
  connection_->EndAnswer(content_type, body);
}

std::string_view ReasonPhrase(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

namespace {

/// The length of the UTF-8 sequence that `text` begins with; 0: it is none.
std::size_t Utf8Length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0u) == 0x80u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!tail(1) || !tail(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;  // Overlong.
    if (lead == 0xED && byte(1) > 0x9F) return 0;  // A surrogate.
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

void WriteEscaped(OutBuffer& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out << R"(\")";
      return;
    case '\\':
      out << R"(\\)";
      return;
    case '\n':
      out << R"(\n)";
      return;
    default:
      out << R"(\u00)" << kHex[(c >> 4) & 15] << kHex[c & 15];
  }
}

}  // namespace

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

void AnswerProblem(HttpExchange& exchange, int status, std::string_view detail,
                   std::string_view pointer, std::string_view field_lines) {
  OutBuffer body;
  WriteProblem(body, status, detail, pointer);
  exchange.Begin(status) << "Cache-Control: no-store\r\n" << field_lines;
  exchange.End("application/problem+json", body.view());
}

}  // namespace tidegate::net
