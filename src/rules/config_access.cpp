// SPDX-License-Identifier: Apache-2.0
// access: how callers authenticate.
#include <algorithm>
#include <unordered_map>

#include "rules/config_access.hpp"

namespace tidegate {
namespace {

using May = TokenSpec::May;

constexpr std::size_t kMaxTokens = 1'000;
constexpr std::size_t kMinAccessToken = 16;
constexpr std::size_t kMaxAccessToken = 128;

/// Takes the first word off `line`; empty: there is none.
std::string_view TakeWord(std::string_view& line) noexcept {
  constexpr std::string_view kBlanks = " \t";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

std::string_view TakeLine(std::string_view& text) noexcept {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool IsPrintable(std::string_view word) noexcept {
  return std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

/// What is wrong with a token; empty: nothing.
std::string Objection(std::string_view token) {
  if (token.empty()) return "has a name, but no token; write `NAME TOKEN`";
  if (token.size() < kMinAccessToken || token.size() > kMaxAccessToken) {
    return "the token has " + std::to_string(token.size()) +
           " characters, and should have 16 to 128; `openssl rand -hex 32` makes a good one";
  }
  if (!IsPrintable(token)) return "the token should have printable ASCII characters only";
  return {};
}

/// Reads tokens line by line. No word of a line is ever shown: where two are swapped, any of them
/// may be the token.
class TokenReader {
 public:
  explicit TokenReader(const ConfigValue& value) noexcept : value_(value) {}

  [[nodiscard]] std::vector<TokenSpec> Read(std::string_view text) {
    while (!text.empty() && !value_.context().full()) {
      ++line_;
      std::string_view rest = TakeLine(text);
      const std::string_view name = TakeWord(rest);
      if (name.empty() || name.starts_with('#')) continue;
      if (tokens_.size() == kMaxTokens) {
        Refuse("there are more than 1,000 tokens");
        break;
      }
      // Bad ones count too, so that what is told of the others is right.
      tokens_.push_back(ReadToken(name, rest));
    }
    if (tokens_.empty()) {
      value_.Error(
          "names no token, so that nobody could ask; write one a line, as in `NAME TOKEN`");
    }
    return std::move(tokens_);
  }

 private:
  void Refuse(std::string_view why) const {
    value_.Error("line " + std::to_string(line_) + ": " + std::string{why});
  }

  TokenSpec ReadToken(std::string_view name, std::string_view rest) {
    const std::string_view secret = TakeWord(rest);
    const std::string_view may = TakeWord(rest);
    if (!IsId(name)) Refuse("the name " + std::string{kIdGrammar});
    if (const std::string objection = Objection(secret); !objection.empty()) {
      Refuse(objection);
    }
    if (may != "ask" && may != "all" && !may.empty()) {
      Refuse("the third word should be `ask` or `all`");
    }
    if (!TakeWord(rest).empty()) {
      Refuse("has more than three words; write `NAME TOKEN`, `NAME TOKEN ask` or `NAME TOKEN all`");
    }
    const auto [named, new_name] = names_.emplace(name, line_);
    if (!new_name) Refuse("has the name of line " + std::to_string(named->second));
    if (!secret.empty()) {
      const auto [shown, new_token] = secrets_.emplace(secret, line_);
      if (!new_token) Refuse("has the token of line " + std::to_string(shown->second));
    }
    return {.name = std::string{name},
            .secret = std::string{secret},
            .may = may == "ask" ? May::kAsk : May::kAll};
  }

  const ConfigValue& value_;
  std::size_t line_ = 0;
  std::vector<TokenSpec> tokens_;
  /// The line that each was first on. They point into the text, of which no copy is made.
  std::unordered_map<std::string_view, std::size_t> names_;
  std::unordered_map<std::string_view, std::size_t> secrets_;
};

void ReadTokens(const ConfigValue& value, ConfigDraft& draft) {
  draft.places.access_tokens = value.at();
  const auto text = value.Secret(0, kMaxBundleFile);
  if (text) draft.config.access.tokens = TokenReader(value).Read(*text);
}

constexpr std::array<ConfigKey<ConfigDraft>, 2> kAccessKeys = {{
    {"tokens", ReadTokens},
    {"certificates",
     [](const ConfigValue& v, ConfigDraft& d) {
       d.places.access_certificates = v.at();
       d.config.access.certificates = ReadAccessCertificates(v);
     }},
}};

}  // namespace

void ReadAccess(const ConfigValue& value, ConfigDraft& draft) {
  draft.places.access = value.at();
  ReadSection(value, kAccessKeys, draft);
  const ConfigPlaces& places = draft.places;
  if (value.is_map() && places.access_tokens.line == 0 && places.access_certificates.line == 0) {
    value.Error("needs `tokens`, as in `tokens: file:PATH`, or `certificates`");
  }
}

void AppendAccessKeys(std::vector<SectionKeys>& sections) {
  sections.push_back(KeysOf("access", kAccessKeys));
  AppendAccessCertificateKeys(sections);
}

}  // namespace tidegate
