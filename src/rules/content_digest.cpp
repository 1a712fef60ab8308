// SPDX-License-Identifier: Apache-2.0
#include "rules/content_digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "rules/file_pattern.hpp"

namespace tidegate {

ContentDigest DigestOf(std::string_view content) noexcept {
  if (content.empty()) return {};
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return {hash.low64, hash.high64};
}

ContentDigest DigestOfFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  std::ifstream in(path, std::ios::binary);
  // In pieces: whoever may write the file decides how long it is.
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  if (state == nullptr || XXH3_128bits_reset(state.get()) != XXH_OK) return {};
  std::array<char, 16u << 10> piece;
  bool empty = true;
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto size = static_cast<std::size_t>(in.gcount());
    XXH3_128bits_update(state.get(), piece.data(), size);
    empty = empty && size == 0;
  }
  if (empty || !in.eof()) return {};
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return {hash.low64, hash.high64};
}

ContentDigest DigestOfNames(const std::vector<std::string>& names) {
  std::string text = "names\n";
  for (const std::string& name : names) text += name + "\n";
  return DigestOf(text);
}

ContentDigest CurrentDigest(const FileSeen& seen) {
  if (!seen.is_pattern) return DigestOfFile(seen.path);
  return DigestOfNames(FilesMatching(seen.path).value_or(std::vector<std::string>{}));
}

}  // namespace tidegate
