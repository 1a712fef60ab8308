// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "net/out_buffer.hpp"

namespace tidegate {

/// Writes replies of the Redis protocol, version 2 or 3. Types that version 2 lacks are written as
/// Redis writes them there.
class RespWriter {
 public:
  RespWriter(net::OutBuffer& out, int version) : out_(out), version_(version) {}

  /// REQUIRES: `text` has no line breaks.
  void Simple(std::string_view text) { out_ << '+' << text << "\r\n"; }
  /// Writes an error such as `ERR message`. Line breaks become blanks, because one would end the
  /// reply.
  void Error(std::string_view text) {
    out_ << '-';
    for (const char c : text) out_ << (c == '\r' || c == '\n' ? ' ' : c);
    out_ << "\r\n";
  }
  void Integer(std::int64_t number) {
    char* const to = out_.Reserve(24);
    char* end = to;
    *end++ = ':';
    if (number >= 0 && number <= 9) {
      *end++ = static_cast<char>('0' + number);
    } else {
      end = std::to_chars(end, to + 24, number).ptr;
    }
    *end++ = '\r';
    *end++ = '\n';
    out_.Advance(static_cast<std::size_t>(end - to));
  }
  void Text(std::string_view text) { out_ << '$' << text.size() << "\r\n" << text << "\r\n"; }
  /// Writes a text for people; in version 3 its type says that it is not data.
  void Verbatim(std::string_view text) {
    if (version_ < 3) return Text(text);
    out_ << '=' << text.size() + 4 << "\r\ntxt:" << text << "\r\n";
  }
  void Null() { out_ << (version_ < 3 ? "$-1\r\n" : "_\r\n"); }
  void Array(std::size_t elements) { out_ << '*' << elements << "\r\n"; }
  void Set(std::size_t elements) { out_ << (version_ < 3 ? '*' : '~') << elements << "\r\n"; }
  /// Keys and values follow in turn.
  void Map(std::size_t pairs) {
    if (version_ < 3) return Array(pairs * 2);
    out_ << '%' << pairs << "\r\n";
  }

 private:
  net::OutBuffer& out_;
  const int version_;
};

}  // namespace tidegate
