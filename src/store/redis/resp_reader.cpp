// SPDX-License-Identifier: Apache-2.0
#include "store/redis/resp_reader.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace tidegate::redis {
namespace {

std::optional<std::int64_t> Number(std::string_view digits) noexcept {
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || error != std::errc{} || rest != end) return std::nullopt;
  return number;
}

}  // namespace

void RespReader::Clear() noexcept {
  buffer_.clear();
  taken_ = needed_ = 0;
  broken_ = false;
}

RespReader::Progress RespReader::Next(Reply& reply) {
  if (broken_) return Progress::kGarbage;
  if (taken_ > 0) {
    // What was read goes when the next one is asked for: its texts pointed there.
    buffer_.erase(0, taken_);
    needed_ -= std::min(needed_, taken_);
    taken_ = 0;
  }
  if (buffer_.empty() || buffer_.size() < needed_) return Progress::kMore;
  at_ = 0;
  needed_ = 0;
  Progress progress = Read(reply, 0);
  if (progress == Progress::kReply) taken_ = at_;
  // Only a text may be long: everything else is read anew with each piece that comes.
  const std::size_t most = needed_ > 0 ? kMostBytes : kMostWithoutText;
  if (progress == Progress::kMore && buffer_.size() > most) progress = Progress::kGarbage;
  broken_ = progress == Progress::kGarbage;
  return progress;
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
  if (buffer_.size() - at_ < length + 2) {
    needed_ = at_ + length + 2;
    return Progress::kMore;
  }
  reply.text = std::string_view(buffer_).substr(at_, length);
  at_ += length;
  if (std::string_view(buffer_).substr(at_, 2) != "\r\n") return Progress::kGarbage;
  at_ += 2;
  return Progress::kReply;
}

RespReader::Progress RespReader::ReadElements(Reply& reply, std::string_view size,
                                              std::int64_t each, int depth) {
  const auto count = Number(size);
  // Every element takes three bytes at least: a count beyond what may come is a lie.
  if (!count || *count < -1 || *count > static_cast<std::int64_t>(kMostBytes) / 3 / each) {
    return Progress::kGarbage;
  }
  if (depth == kMostDepth) return Progress::kGarbage;
  if (*count == -1) {
    reply.type = Reply::Type::kNull;
    return Progress::kReply;
  }
  for (std::int64_t i = 0; i < *count * each; ++i) {
    // Grows with what has come, not with what was announced.
    if (const Progress progress = Read(reply.elements.emplace_back(), depth + 1);
        progress != Progress::kReply) {
      return progress;
    }
  }
  return Progress::kReply;
}

RespReader::Progress RespReader::Read(Reply& reply, int depth) {
  reply = Reply{};
  if (at_ >= buffer_.size()) return Progress::kMore;
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
    case '_':
      return line.empty() ? Progress::kReply : Progress::kGarbage;
    case '$':
    case '=':
      reply.type = Type::kText;
      return ReadText(reply, line);
    case '!':
      reply.type = Type::kError;
      return ReadText(reply, line);
    case '*':
    case '~':
      reply.type = Type::kArray;
      return ReadElements(reply, line, 1, depth);
    case '>':
      reply.type = Type::kPush;
      return ReadElements(reply, line, 1, depth);
    case '%':
      reply.type = Type::kArray;
      return ReadElements(reply, line, 2, depth);
    default:
      return Progress::kGarbage;
  }
}

}  // namespace tidegate::redis
