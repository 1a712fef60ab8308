// SPDX-License-Identifier: Apache-2.0
#include "telemetry/log.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace tidegate {
namespace {

std::atomic<Log::Format> g_format{Log::Format::kText};
std::atomic<Log::Level> g_least{Log::Level::kInfo};

constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};

std::string TimeText() {
  using namespace std::chrono;
  const auto now = time_point_cast<milliseconds>(system_clock::now());
  const std::time_t second = system_clock::to_time_t(now);
  std::tm utc{};
  gmtime_r(&second, &utc);
  char text[40];
  const auto size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + size, sizeof text - size, ".%03dZ",
                static_cast<int>(now.time_since_epoch().count() % 1000));
  return text;
}

/// Appends text as the content of a JSON string, with bytes beyond ASCII escaped as Latin-1.
void AppendEscaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7F) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    } else {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c) & 0xFFu);
      out += code;
    }
  }
}

bool IsPlain(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c > 0x20 && c < 0x7F && c != '"' && c != '=' && c != '\\';
  });
}

}  // namespace

void Log::Configure(Format format, Level least) noexcept {
  g_format = format;
  g_least = least;
}

std::string Log::Line(Format format, Level level, std::string_view time, std::string_view what,
                      Fields fields) {
  const std::string_view name = kNames[static_cast<std::size_t>(level)];
  std::string line;
  if (format == Format::kJson) {
    line.append(R"({"time":")").append(time).append(R"(","level":")").append(name);
    line += R"(","message":")";
    AppendEscaped(line, what);
    line += '"';
    for (const Field& field : fields) {
      line.append(",\"").append(field.name).append("\":\"");
      AppendEscaped(line, field.value);
      line += '"';
    }
    line += '}';
    return line;
  }
  line.append(time).append(" ").append(name).append(": ");
  // Messages may quote input, whose control characters must not end the line or steer the terminal.
  for (const char c : what) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  for (const Field& field : fields) {
    line.append("  ").append(field.name).append("=");
    if (IsPlain(field.value)) {
      line += field.value;
    } else {
      line += '"';
      AppendEscaped(line, field.value);
      line += '"';
    }
  }
  return line;
}

void Log::Write(Level level, std::string_view what, Fields fields) {
  if (level < g_least.load(std::memory_order_relaxed)) return;
  std::string line = Line(g_format, level, TimeText(), what, fields);
  line += '\n';
  // One write per line, so that lines of several threads do not mix. Errors are ignored.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace tidegate
