// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tidegate {

/// One line per event on standard error, for people or for machines. Thread-safe. What came from
/// outside cannot break a line: everything is escaped.
class Log {
 public:
  enum class Format : std::uint8_t { kText, kJson };
  enum class Level : std::uint8_t { kDebug, kInfo, kWarning, kError };
  struct Field {
    std::string_view name;
    std::string value;
  };
  using Fields = std::initializer_list<Field>;

  static void Configure(Format format, Level least) noexcept;

  static void Debug(std::string_view what, Fields fields = {}) {
    Write(Level::kDebug, what, fields);
  }
  static void Info(std::string_view what, Fields fields = {}) { Write(Level::kInfo, what, fields); }
  static void Warning(std::string_view what, Fields fields = {}) {
    Write(Level::kWarning, what, fields);
  }
  static void Error(std::string_view what, Fields fields = {}) {
    Write(Level::kError, what, fields);
  }

  /// The line, without its end; `time` is RFC 3339.
  [[nodiscard]] static std::string Line(Format format, Level level, std::string_view time,
                                        std::string_view what, Fields fields);

 private:
  static void Write(Level level, std::string_view what, Fields fields);
};

}  // namespace tidegate
