// SPDX-License-Identifier: Apache-2.0
#include "store/redis/resp_reader.hpp"

#include "store/redis/endpoint.hpp"

namespace tidegate::redis {
void RespReader::Clear() noexcept {
  buffer_ = std::string();
  open_.clear();
  taken_ = at_ = elements_ = 0;
  broken_ = false;
}

RespReader::Progress RespReader::Next(Reply& reply) {
  if (broken_) return Progress::kGarbage;
  // The texts of the previous reply were valid until now.
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
  // Without this, every connection would keep as much memory as its longest reply took.
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
    // A line is short: long texts are preceded by their size.
    return buffer_.size() - at_ > 64u << 10 ? Progress::kGarbage : Progress::kMore;
  }
  if (end == at_ || buffer_[end - 1] != '\r') return Progress::kGarbage;
  line = std::string_view(buffer_).substr(at_, end - 1 - at_);
  at_ = end + 1;
  return Progress::kReply;
}

RespReader::Progress RespReader::ReadText(Reply& reply, std::int64_t size) {
  if (size < -1 || size > static_cast<std::int64_t>(kMostBytes)) return Progress::kGarbage;
  if (size == -1) {
    reply.type = Reply::Type::kNull;
    return Progress::kReply;
  }
  const auto length = static_cast<std::size_t>(size);
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  if (rest.size() < length + 2) return Progress::kMore;
  if (rest.substr(length, 2) != "\r\n") return Progress::kGarbage;
  reply.text = rest.substr(0, length);
  at_ += length + 2;
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
    case '-':
      reply.type = kind == '-' ? Type::kError : Type::kText;
      reply.text = line;
      return Progress::kReply;
    case '_': return line.empty() ? Progress::kReply : Progress::kGarbage;
    case '#':
      reply.type = Type::kInteger;
      reply.integer = line == "t" ? 1 : 0;
      return line == "t" || line == "f" ? Progress::kReply : Progress::kGarbage;
    default: break;
  }
  // The other kinds begin with a number: the value, or the size of the text or array.
  if (line.starts_with('+')) line.remove_prefix(1);
  const auto number = ReadInteger(line);
  if (!number) return Progress::kGarbage;
  switch (kind) {
    case ':':
      reply.type = Type::kInteger;
      reply.integer = *number;
      return Progress::kReply;
    case '$':
    case '=': reply.type = Type::kText; return ReadText(reply, *number);
    case '!': reply.type = Type::kError; return ReadText(reply, *number);
    case '*':
    case '~':
    case '%': reply.type = Type::kArray; break;
    case '>': reply.type = Type::kPush; break;
    default: return Progress::kGarbage;
  }
  const std::int64_t each = kind == '%' ? 2 : 1;
  const auto most = static_cast<std::int64_t>(kMostElements) / each;
  if (*number < -1 || *number > most || depth == kMostDepth) return Progress::kGarbage;
  if (*number == -1) {
    reply.type = Type::kNull;
  } else {
    elements = static_cast<std::size_t>(*number * each);
  }
  return Progress::kReply;
}

}  // namespace tidegate::redis
