// SPDX-License-Identifier: Apache-2.0
#include "store/redis/key_names.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "base/ascii.hpp"

namespace tidegate::redis {
namespace {

constexpr std::size_t kLongest = 200;

constexpr std::array<std::string_view, kAlgorithms> kTags = {
    "tb:", "sl:", "sw:", "fw:", "gc:", "cc:"};

/// The CRC-16/XMODEM of each byte.
constexpr std::array<std::uint16_t, 256> kTable = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000u) != 0 ? crc << 1 ^ 0x1021u : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc & 0xFFFFu);
  }
  return table;
}();

std::string_view TagOf(const Charge& charge) noexcept {
  return kTags[static_cast<std::size_t>(charge.quota->algorithm())];
}

void AppendHash(std::string& out, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  out.push_back('~');
  for (std::size_t i = 0; i < 16; ++i) AppendHex(out, "", static_cast<char>(digest[i]));
}

/// Returns whether a text may appear in a key as it is. `special` is a character that has a meaning
/// in this part of the key; the other special characters have a meaning in all parts.
bool IsPlain(std::string_view text, char special) {
  return !text.empty() && text.size() <= kLongest && text.front() != '~' &&
         std::ranges::all_of(text, [special](char c) {
           return c > ' ' && c < 0x7f && c != '{' && c != '}' && c != special;
         });
}

void Append(std::string& out, std::string_view text, char special) {
  if (IsPlain(text, special)) {
    out.append(text);
  } else {
    AppendHash(out, text);
  }
}

/// Appends `per-key:{client_ip=203.0.113.7}`, or `per-key:{acme}` with a slot tag.
void AppendRuleAndSlotTag(std::string& out, const Charge& charge) {
  Append(out, charge.rule, ':');
  out.append(":{");
  Append(out, charge.effective_slot_tag(), '\0');
  out.push_back('}');
}

}  // namespace

Slot SlotOfTag(std::string_view tag) noexcept {
  unsigned crc = 0;
  for (const char c : tag) {
    crc = (crc << 8 & 0xFFFFu) ^ kTable[(crc >> 8) ^ static_cast<unsigned char>(c)];
  }
  return static_cast<Slot>(crc % kSlots);
}

void KeyNames::AppendKey(std::string& out, const Charge& charge) const {
  out.append(prefix_).append(TagOf(charge));
  AppendRuleAndSlotTag(out, charge);
  if (!charge.tagged()) return;
  out.push_back(':');
  Append(out, charge.identity, '\0');
}

void KeyNames::AppendRefund(std::string& out, const Charge& charge, std::string_view id) const {
  out.append(prefix_).append("rf:").append(TagOf(charge));
  AppendRuleAndSlotTag(out, charge);
  if (charge.tagged()) {
    out.append(":{");
    Append(out, charge.identity, '\0');
    out.push_back('}');
  }
  out.push_back(':');
  Append(out, id, '\0');
}

void KeyNames::AppendSubject(std::string& out, std::string_view rule, std::string_view identity) {
  Append(out, rule, ':');
  out.push_back(':');
  Append(out, identity, '\0');
}

bool KeyNames::AppendSubjectOf(std::string& out, std::string_view key) const {
  if (!key.starts_with(prefix_)) return false;
  key.remove_prefix(prefix_.size());
  if (std::ranges::none_of(kTags, [&](std::string_view tag) { return key.starts_with(tag); })) {
    return false;
  }
  key.remove_prefix(kTags[0].size());
  const std::size_t open = key.find(":{");
  const std::size_t close = key.find('}');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return false;
  }
  const std::string_view rest = key.substr(close + 1);
  if (!rest.empty() && rest.front() != ':') return false;
  out.append(key.substr(0, open)).append(":");
  out.append(rest.empty() ? key.substr(open + 2, close - open - 2) : rest.substr(1));
  return true;
}

Slot KeyNames::SlotOf(const Charge& charge) {
  const std::string_view tag = charge.effective_slot_tag();
  if (IsPlain(tag, '\0')) return SlotOfTag(tag);
  std::string name;
  AppendHash(name, tag);
  return SlotOfTag(name);
}

void KeyNames::AppendLease(std::string& out, std::string_view lease) { Append(out, lease, '#'); }

}  // namespace tidegate::redis
