// SPDX-License-Identifier: Apache-2.0
#include "rules/read_context.hpp"

#include <algorithm>
#include <filesystem>
#include <tuple>

namespace tidegate {
namespace {

constexpr std::size_t kMaxMessage = 500;

void AppendEscaped(std::string& out, unsigned char byte) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

/// Values may hold anything that YAML escapes can write, and messages go to terminals and logs. C1
/// controls (0xc2 0x80 to 0x9f in UTF-8) steer some terminals too.
std::string Escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (byte < 0x20 || byte == 0x7f || c1) {
      AppendEscaped(out, byte);
    } else {
      out += text[i];
    }
    if (c1) AppendEscaped(out, static_cast<unsigned char>(text[++i]));
  }
  return out;
}

std::string Shortened(std::string text) {
  if (text.size() <= kMaxMessage) return text;
  // The end holds what would be right, so the middle goes; never half a character.
  const auto whole = [&](std::size_t i) {
    while (i < text.size() && (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80) ++i;
    return i;
  };
  const std::size_t head = whole(kMaxMessage / 2);
  const std::size_t tail = whole(text.size() - kMaxMessage / 2);
  return text.substr(0, head) + " ... " + text.substr(tail);
}

}  // namespace

std::string Where::Text() const {
  std::string text = parent != nullptr ? parent->Text() : std::string{};
  if (index != kNoIndex) return text + "[" + std::to_string(index) + "]";
  if (!text.empty() && !key.empty()) text += ".";
  return Shortened(Escaped(text + std::string{key}));
}

std::string ReadContext::FolderOf(const Position& at) const {
  if (at.file.is_main()) return folder_;
  const std::string folder = std::filesystem::path(at.file.path()).parent_path().string();
  return folder.empty() ? "." : folder;
}

void ReadContext::Add(Problem::Severity severity, Position at, std::string where,
                      std::string_view message) {
  if (severity == Problem::Severity::kError) errors_ = true;
  if (full()) return;
  // What is shown of a value is cut before it is escaped: it may be megabytes.
  std::string text{message.substr(0, kMaxMessage)};
  if (message.size() > 2 * kMaxMessage) {
    text += message.substr(message.size() - kMaxMessage);
  } else {
    text = message;
  }
  problems_.push_back({severity, at, std::move(where), Shortened(Escaped(text))});
}

void ReadContext::Error(Position at, const Where& where, std::string_view message) {
  errors_ = true;
  if (!full()) Add(Problem::Severity::kError, at, where.Text(), message);
}

void ReadContext::NoteFile(FileSeen file) {
  if (std::ranges::find(files_, file.path, &FileSeen::path) != files_.end()) return;
  files_.push_back(std::move(file));
}

bool ReadContext::HasInlineSecret(const SourceFile& file) const {
  return std::ranges::find(with_secrets_, file) != with_secrets_.end();
}

Problems ReadContext::TakeSorted() {
  Problems problems = std::move(problems_);
  problems_.clear();
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tuple(a.at.file.order(), a.at.line, a.at.column) <
           std::tuple(b.at.file.order(), b.at.line, b.at.column);
  });
  if (problems.size() >= kMaxProblems) {
    problems.push_back({.severity = Problem::Severity::kError,
                        .at = {},
                        .where = {},
                        .message = "there are more problems than the 1,000 told here"});
    if (!errors_) problems.back().severity = Problem::Severity::kWarning;
  }
  return problems;
}

}  // namespace tidegate
