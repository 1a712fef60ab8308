// SPDX-License-Identifier: Apache-2.0
#include "base/message_text.hpp"

#include <algorithm>
#include <array>

#include "base/ascii.hpp"

namespace tidegate {
namespace {

/// The longest word that gets a hint: longer ones are hardly typing errors, and the table is small.
constexpr std::size_t kLongestWord = 40;

char Folded(char c) noexcept { return c == '-' ? '_' : Lower(c); }

/// Returns how many insertions, deletions, changes and swaps of neighbouring characters turn `a`
/// into `b`. REQUIRES: neither is longer than kLongestWord.
std::size_t Distance(std::string_view a, std::string_view b) noexcept {
  std::array<std::array<std::size_t, kLongestWord + 1>, kLongestWord + 1> d{};
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = Folded(a[i - 1]) == Folded(b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && Folded(a[i - 1]) == Folded(b[j - 2]) &&
          Folded(a[i - 2]) == Folded(b[j - 1])) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string Printable(std::string_view text) {
  constexpr std::size_t kMost = 64;
  std::string out;
  for (const char c : text.substr(0, kMost)) {
    if (c >= 0x20 && c < 0x7F) {
      out += c;
    } else {
      AppendHex(out, "\\x", c);
    }
  }
  if (text.size() > kMost) out += "...";
  return out;
}

std::optional<std::string_view> Nearest(std::string_view text,
                                        std::span<const std::string_view> candidates) {
  if (text.empty() || text.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t least = std::max<std::size_t>(1, text.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const std::size_t distance = Distance(text, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view text, std::span<const std::string_view> candidates) {
  const auto nearest = Nearest(text, candidates);
  if (!nearest) return {};
  return "; did you mean " + Backticked(*nearest) + "?";
}

std::string OneOf(std::span<const std::string_view> candidates) {
  std::string text;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (i > 0) text += i + 1 == candidates.size() ? " or " : ", ";
    text += Backticked(candidates[i]);
  }
  return text;
}

}  // namespace tidegate
