// SPDX-License-Identifier: Apache-2.0
#include "gateway/strict_reader.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace tidegate::gateway_test {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kTokenChars =
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool Only(std::string_view text, std::string_view chars) {
  return !text.empty() && text.find_first_not_of(chars) == std::string_view::npos;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

/// Parser of one message. It keeps its position in the bytes.
class Reading {
 public:
  explicit Reading(std::string_view bytes) : bytes_(bytes) {}

  bool Bad(std::string why) {
    message.frame = Frame::kBad;
    message.why = std::move(why);
    return false;
  }
  /// Reads the head. Returns true if the head is complete and its lines are valid.
  bool Head();
  bool Body(bool until_close, bool closed);
  [[nodiscard]] const std::string& start_line() const { return start_line_; }

  Message message;

 private:
  bool LineEnds(std::string_view text);
  bool FieldLine(std::string_view line, std::vector<std::pair<std::string, std::string>>& to);
  bool Chunks();
  bool Trailers(std::size_t at);
  void Whole(std::size_t size) {
    message.frame = Frame::kWhole;
    message.size = size;
  }

  std::string_view bytes_;
  std::string start_line_;
  std::size_t body_at_ = 0;
};

/// Returns true if the text so far has no CR without LF and no LF without CR.
bool Reading::LineEnds(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) return Bad("a bare LF");
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] != '\n') return Bad("a bare CR");
  }
  return true;
}

bool Reading::FieldLine(std::string_view line,
                        std::vector<std::pair<std::string, std::string>>& to) {
  if (line.front() == ' ' || line.front() == '\t') return Bad("a folded line");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return Bad("a line without a colon");
  if (!Only(line.substr(0, colon), kTokenChars)) return Bad("a field name that is no token");
  std::string_view value = line.substr(colon + 1);
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7F) return Bad("a control character in a value");
  }
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
  to.emplace_back(Lower(line.substr(0, colon)), value);
  return true;
}

bool Reading::Head() {
  const std::size_t end = bytes_.find("\r\n\r\n");
  const std::string_view head = bytes_.substr(0, end == std::string_view::npos ? end : end + 4);
  if (!LineEnds(head) || end == std::string_view::npos) return false;
  std::string_view lines = head.substr(0, end + 2);
  const std::size_t first = lines.find("\r\n");
  start_line_ = lines.substr(0, first);
  lines.remove_prefix(first + 2);
  while (!lines.empty()) {
    const std::size_t next = lines.find("\r\n");
    if (!FieldLine(lines.substr(0, next), message.fields)) return false;
    lines.remove_prefix(next + 2);
  }
  for (const char* once : {"content-length", "transfer-encoding", "host"}) {
    if (message.Count(once) > 1) return Bad(std::string("more than one ") + once);
  }
  const bool length = message.Count("content-length") == 1;
  const bool coding = message.Count("transfer-encoding") == 1;
  if (length && coding) return Bad("both Content-Length and Transfer-Encoding");
  if (length && (!Only(message.Field("content-length"), kDigits) ||
                 message.Field("content-length").size() > 18)) {
    return Bad("a Content-Length that is no number");
  }
  if (coding && Lower(message.Field("transfer-encoding")) != "chunked") {
    return Bad("a coding other than chunked");
  }
  body_at_ = end + 4;
  message.head_whole = true;
  return true;
}

bool Reading::Body(bool until_close, bool closed) {
  if (message.Count("transfer-encoding") == 1) return Chunks();
  if (message.Count("content-length") == 1) {
    const std::size_t length = std::stoull(message.Field("content-length"));
    message.body = bytes_.substr(body_at_, length);
    if (message.body.size() == length) Whole(body_at_ + length);
    return true;
  }
  if (!until_close) {
    Whole(body_at_);
    return true;
  }
  message.body = bytes_.substr(body_at_);
  if (closed) Whole(bytes_.size());
  return true;
}

bool Reading::Chunks() {
  std::size_t at = body_at_;
  while (true) {
    const std::size_t end = bytes_.find("\r\n", at);
    const std::string_view line =
        bytes_.substr(at, end == std::string_view::npos ? end : end + 2 - at);
    if (!LineEnds(line)) return false;
    if (end == std::string_view::npos) return true;
    const std::string_view digits = line.substr(0, line.find_first_of(";\r"));
    if (!Only(digits, kHexDigits) || digits.size() > 15) return Bad("a malformed chunk size");
    const std::size_t size = std::stoull(std::string(digits), nullptr, 16);
    at = end + 2;
    if (size == 0) return Trailers(at);
    message.body += bytes_.substr(at, size);
    if (bytes_.size() < at + size + 2) return true;
    if (bytes_.substr(at + size, 2) != "\r\n") return Bad("a chunk without CRLF behind it");
    at += size + 2;
  }
}

bool Reading::Trailers(std::size_t at) {
  std::vector<std::pair<std::string, std::string>> trailers;
  while (true) {
    const std::size_t end = bytes_.find("\r\n", at);
    const std::string_view line =
        bytes_.substr(at, end == std::string_view::npos ? end : end + 2 - at);
    if (!LineEnds(line)) return false;
    if (end == std::string_view::npos) return true;
    if (end == at) break;
    if (!FieldLine(bytes_.substr(at, end - at), trailers)) return false;
    at = end + 2;
  }
  for (const auto& [name, value] : trailers) {
    if (name == "content-length" || name == "transfer-encoding" || name == "host") {
      return Bad("a trailer that frames or routes");
    }
  }
  Whole(at + 2);
  return true;
}

}  // namespace

int Message::Count(std::string_view name) const {
  return static_cast<int>(
      std::count_if(fields.begin(), fields.end(), [&](const auto& f) { return f.first == name; }));
}

std::string Message::Field(std::string_view name) const {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const auto& f) { return f.first == name; });
  return found == fields.end() ? std::string() : found->second;
}

Message ReadRequest(std::string_view bytes) {
  Reading reading(bytes);
  Message& message = reading.message;
  if (!reading.Head()) return message;
  const std::string& line = reading.start_line();
  const std::size_t first = line.find(' ');
  const std::size_t second = line.rfind(' ');
  const std::string version = line.substr(std::min(second, line.size() - 1) + 1);
  if (first == std::string::npos || second <= first + 1 ||
      (version != "HTTP/1.1" && version != "HTTP/1.0")) {
    reading.Bad("not a request line");
    return message;
  }
  message.method = line.substr(0, first);
  message.target = line.substr(first + 1, second - first - 1);
  const bool visible = std::all_of(message.target.begin(), message.target.end(),
                                   [](unsigned char c) { return c > 0x20 && c != 0x7F; });
  if (!Only(message.method, kTokenChars) || !visible) {
    reading.Bad("not a method and a target");
  } else if (version == "HTTP/1.1" && message.Count("host") != 1) {
    reading.Bad("no Host");
  } else if (version == "HTTP/1.0" && message.Count("transfer-encoding") != 0) {
    reading.Bad("Transfer-Encoding in HTTP/1.0");
  } else {
    reading.Body(false, false);
  }
  return message;
}

Message ReadAnswer(std::string_view bytes, AnswerContext context) {
  Reading reading(bytes);
  Message& message = reading.message;
  const std::string_view begin = std::string_view("HTTP/1.");
  if (!begin.starts_with(bytes.substr(0, begin.size()))) {
    reading.Bad("not a response");
    return message;
  }
  if (!reading.Head()) return message;
  const std::string& line = reading.start_line();
  if (line.size() < 12 || line[8] != ' ' || !Only(line.substr(9, 3), kDigits) ||
      (line.size() > 12 && line[12] != ' ')) {
    reading.Bad("not a status line");
    return message;
  }
  message.status = std::stoi(line.substr(9, 3));
  const bool bare = message.status < 200 || message.status == 204 || message.status == 304;
  if (bare || context.after_head) {
    message.frame = Frame::kWhole;
    message.size = bytes.find("\r\n\r\n") + 4;
  } else {
    reading.Body(true, context.closed);
  }
  return message;
}

std::string Printable(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\r' || c == '\n') {
      text += c == '\r' ? "\\r" : "\\n";
    } else if (byte < 0x20 || byte >= 0x7F) {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\x%02x", static_cast<unsigned>(byte));
      text += code.data();
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace tidegate::gateway_test
