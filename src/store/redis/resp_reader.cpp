// SPDX-License-Identifier: Apache-2.0
#include "store/redis/resp_reader.hpp"

#include <optional>

#include "store/redis/endpoint.hpp"

namespace tidegate::redis {
namespace {

std::optional<std::int64_t> Number(std::string_view digits) noexcept {
  if (digits.starts_with('+')) digits.remove_prefix(1);
  return ReadInteger(digits);
}

}  // namespace

void RespReader::Clear() noexcept {
  buffer_ = std::string();
  open_.clear();
  taken_ = at_ = elements_ = 0;
  broken_ = false;
}

RespReader::Progress RespReader::Next(Reply& reply) {
  if (broken_) return Progress::kGarbage;
  // The previous reply is dropped now: its texts pointed to it.
  if (taken_ > 0) Forget();
  Progress progress = Scan(reply);
  if (progress == Progress::kMore && buffer_.size() > kMostBytes) progress = Progress::kGarbage;
  if (progress == Progress::kReply) {
    taken_ = at_;
    if (elements_ > 0) {
      at_ = 0;
      Build(reply);
    }
  }
  broken_ = progress == Progress::kGarbage;
  return progress;
}

void RespReader::Forget() {
  buffer_.erase(0, taken_);
  taken_ = at_ = elements_ = 0;
  // Every connection would keep the room of its longest reply.
  constexpr std::size_t kRoom = 1u << 20;
  if (buffer_.capacity() > kRoom && buffer_.size() < kRoom / 2) buffer_.shrink_to_fit();
}

RespReader::Progress RespReader::Scan(Reply& reply) {
  do {
    if (at_ >= buffer_.size()) return Progress::kMore;
    const std::size_t begin = at_;
    std::size_t elements = 0;
    const Progress progress = ReadOne(reply, elements, open_.size());
    if (progress != Progress::kReply) {
      at_ = begin;
      return progress;
    }
    elements_ += elements;
    if (elements_ > kMostElements) return Progress::kGarbage;
    if (elements > 0) {
      open_.push_back(elements);
      continue;
    }
    while (!open_.empty() && --open_.back() == 0) open_.pop_back();
  } while (!open_.empty());
  return Progress::kReply;
}

void RespReader::Build(Reply& reply) {
  std::size_t elements = 0;
  (void)ReadOne(reply, elements, 0);
  reply.elements.resize(elements);
  for (Reply& element : reply.elements) Build(element);
}

RespReader::Progress RespReader::ReadLine(std::string_view& line) {
  const std::size_t end = buffer_.find('\n', at_);
  if (end == std::string::npos) {
    // Texts of any length have their size before them; other lines are short.
    return buffer_.size() - at_ > 64u << 10 ? Progress::kGarbage : Progress::kMore;
  }
  if (end == at_ || buffer_[end - 1] != '\r') return Progress::kGarbage;
  line = std::string_view(buffer_).substr(at_, end - 1 - at_);
  at_ = end + 1;
  return Progress::kReply;
}

RespReader::Progress RespReader::ReadText(Reply& reply, std::string_view size) {
  const auto bytes = Number(size);
  if (!bytes || *bytes < -1 || *bytes > static_cast<std::int64_t>(kMostBytes)) {
    return Progress::kGarbage;
  }
  if (*bytes == -1) {
    reply.type = Reply::Type::kNull;
    return Progress::kReply;
  }
  const auto length = static_cast<std::size_t>(*bytes);
  if (buffer_.size() - at_ < length + 2) return Progress::kMore;
  reply.text = std::string_view(buffer_).substr(at_, length);
  at_ += length;
  if (std::string_view(buffer_).substr(at_, 2) != "\r\n") return Progress::kGarbage;
  at_ += 2;
  return Progress::kReply;
}

RespReader::Progress RespReader::ReadCount(Reply& reply, std::string_view size, std::size_t each,
                                           std::size_t& elements, std::size_t depth) {
  const auto count = Number(size);
  if (!count || *count < -1 || *count > static_cast<std::int64_t>(kMostElements / each)) {
    return Progress::kGarbage;
  }
  if (depth == kMostDepth) return Progress::kGarbage;
  if (*count == -1) {
    reply.type = Reply::Type::kNull;
  } else {
    elements = static_cast<std::size_t>(*count) * each;
  }
  return Progress::kReply;
}

RespReader::Progress RespReader::ReadOne(Reply& reply, std::size_t& elements, std::size_t depth) {
  reply = Reply{};
  const char kind = buffer_[at_++];
  std::string_view line;
  if (const Progress progress = ReadLine(line); progress != Progress::kReply) return progress;
  using Type = Reply::Type;
  switch (kind) {
    case '+':
    case ',':
    case '(':
      reply.type = Type::kText;
      reply.text = line;
      return Progress::kReply;
    case '-':
      reply.type = Type::kError;
      reply.text = line;
      return Progress::kReply;
    case ':':
    case '#': {
      reply.type = Type::kInteger;
      const auto number = kind == ':' ? Number(line)
                                      : Number(line == "t"   ? "1"
                                               : line == "f" ? "0"
                                                             : "");
      if (!number) return Progress::kGarbage;
      reply.integer = *number;
      return Progress::kReply;
    }
    case '_': return line.empty() ? Progress::kReply : Progress::kGarbage;
    case '$':
    case '=': reply.type = Type::kText; return ReadText(reply, line);
    case '!': reply.type = Type::kError; return ReadText(reply, line);
    case '*':
    case '~': reply.type = Type::kArray; return ReadCount(reply, line, 1, elements, depth);
    case '>': reply.type = Type::kPush; return ReadCount(reply, line, 1, elements, depth);
    case '%': reply.type = Type::kArray; return ReadCount(reply, line, 2, elements, depth);
    default: return Progress::kGarbage;
  }
}

}  // namespace tidegate::redis
