// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include "store/redis/resp_reader.hpp"

namespace tidegate::redis {

/// A parsed reply together with the bytes that it points into.
class ParsedReply {
 public:
  explicit ParsedReply(std::string_view bytes) {
    reader_.Feed(bytes);
    if (reader_.Next(reply_) != RespReader::Progress::kReply) {
      throw std::runtime_error("not a complete reply: " + std::string(bytes));
    }
  }
  ParsedReply(const ParsedReply&) = delete;
  ParsedReply& operator=(const ParsedReply&) = delete;
  const Reply& operator*() const { return reply_; }

 private:
  RespReader reader_;
  Reply reply_;
};

inline std::string Bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}
inline std::string Int(std::int64_t number) { return ":" + std::to_string(number) + "\r\n"; }
/// Returns an array, map or push. `kind`: `*`, `%` or `>`; `parts`: encoded elements.
inline std::string Many(char kind, std::initializer_list<std::string> parts) {
  std::string all = kind + std::to_string(kind == '%' ? parts.size() / 2 : parts.size()) + "\r\n";
  for (const std::string& part : parts) all += part;
  return all;
}
inline std::string Array(std::initializer_list<std::string> parts) { return Many('*', parts); }

}  // namespace tidegate::redis
