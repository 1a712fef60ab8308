// SPDX-License-Identifier: Apache-2.0
#include "support/http_client.hpp"

#include <gtest/gtest.h>
#include <strings.h>

#include <algorithm>

namespace tidegate::test {
namespace {

bool SameName(const std::string& a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), b.size()) == 0;
}

HttpFields ParseFields(std::string_view lines) {
  HttpFields fields;
  while (!lines.empty()) {
    const std::size_t end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 2);
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    EXPECT_NE(colon, std::string_view::npos) << "not a field line: " << line;
    if (colon == std::string_view::npos) continue;
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    fields.emplace_back(line.substr(0, colon), value);
  }
  return fields;
}

void ReadLength(Stream& stream, HttpMessage& message, std::size_t length) {
  message.body = stream.ReadExactly(length);
  message.whole = message.body.size() == length;
}

void ReadChunks(Stream& stream, HttpMessage& message) {
  message.whole = false;
  while (true) {
    const std::string line = stream.ReadUntil("\r\n");
    if (!line.ends_with("\r\n")) return;
    const std::size_t size = std::stoul(line, nullptr, 16);
    if (size == 0) break;
    const std::string data = stream.ReadExactly(size + 2);
    message.body.append(data, 0, std::min(size, data.size()));
    if (data.size() != size + 2) return;
    EXPECT_TRUE(data.ends_with("\r\n")) << "the chunk does not end with CRLF";
  }
  std::string lines;
  while (true) {
    const std::string line = stream.ReadUntil("\r\n");
    if (!line.ends_with("\r\n")) return;
    if (line == "\r\n") break;
    lines += line;
  }
  message.trailers = ParseFields(lines);
  message.whole = true;
}

}  // namespace

std::string HttpFields::Value(std::string_view name) const {
  for (const auto& [own, value] : *this) {
    if (SameName(own, name)) return value;
  }
  return {};
}

int HttpFields::Count(std::string_view name) const {
  return static_cast<int>(
      std::ranges::count_if(*this, [&](const auto& field) { return SameName(field.first, name); }));
}

std::string HttpFields::List(std::string_view name) const {
  std::string list;
  for (const auto& [own, value] : *this) {
    if (!SameName(own, name)) continue;
    if (!list.empty()) list += ", ";
    list += value;
  }
  return list;
}

std::string HttpRequest::target() const {
  const std::size_t begin = start.find(' ') + 1;
  return start.substr(begin, start.rfind(' ') - begin);
}

boost::json::object HttpResponse::Json() const {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(body, error);
  EXPECT_TRUE(!error && value.is_object()) << status << " " << body;
  return value.is_object() ? value.get_object() : boost::json::object{};
}

bool ReadHead(Stream& stream, HttpMessage& message) {
  message.head = stream.ReadUntil("\r\n\r\n");
  if (!message.head.ends_with("\r\n\r\n")) return false;
  const std::size_t line = message.head.find("\r\n");
  message.start = message.head.substr(0, line);
  message.fields = ParseFields(std::string_view(message.head).substr(line + 2));
  return true;
}

void ReadRequestBody(Stream& stream, HttpRequest& request) {
  if (request.Field("transfer-encoding") == "chunked") return ReadChunks(stream, request);
  if (request.Has("content-length")) {
    ReadLength(stream, request, std::stoul(request.Field("content-length")));
  }
}

void ReadResponseBody(Stream& stream, HttpResponse& response) {
  EXPECT_FALSE(response.Has("transfer-encoding") && response.Has("content-length"))
      << response.head;
  EXPECT_LE(response.Count("content-length"), 1);
  if (response.Field("transfer-encoding") == "chunked") {
    ReadChunks(stream, response);
  } else if (response.Has("content-length")) {
    ReadLength(stream, response, std::stoul(response.Field("content-length")));
  } else {
    response.body = stream.ReadRest();
  }
}

std::string Post(std::string_view path, std::string_view body, std::string_view more_fields) {
  std::string text = "POST ";
  text.append(path).append(" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
  text.append(more_fields).append("Content-Length: ").append(std::to_string(body.size()));
  return text.append("\r\n\r\n").append(body);
}

std::string Get(std::string_view path, std::string_view method) {
  std::string text(method);
  return text.append(" ").append(path).append(" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
}

HttpResponse HttpClient::ReadPartial(Body body) {
  HttpResponse response;
  if (!ReadHead(*stream_, response)) {
    response.whole = false;
    return response;
  }
  if (!response.start.starts_with("HTTP/1.1 ") || response.start.size() < 13) {
    ADD_FAILURE() << "not a status line: " << response.start;
    return response;
  }
  response.status = std::stoi(response.start.substr(9, 3));
  response.reason = response.start.substr(13);
  const bool never = response.status < 200 || response.status == 204 || response.status == 304;
  if (!never && body == Body::kYes) ReadResponseBody(*stream_, response);
  return response;
}

HttpResponse HttpClient::Read(Body body) {
  HttpResponse response = ReadPartial(body);
  EXPECT_TRUE(response.status != 0 && response.whole)
      << "no complete response, but: " << response.head.substr(0, 200)
      << response.body.substr(0, 200);
  return response;
}

std::optional<HttpResponse> HttpClient::TryRead(Body body) {
  HttpResponse response = ReadPartial(body);
  if (response.status == 0 || !response.whole) return std::nullopt;
  return response;
}

}  // namespace tidegate::test
