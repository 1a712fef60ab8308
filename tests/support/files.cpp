// SPDX-License-Identifier: Apache-2.0
#include "support/files.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace tidegate::test {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  const fs::path memory = "/dev/shm";
  const bool writable = access(memory.c_str(), W_OK) == 0;
  std::string name = ((writable ? memory : fs::temp_directory_path()) / "tidegate-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create a folder " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string ReadSourceFile(const fs::path& path) {
  const fs::path whole = fs::path(TIDEGATE_SOURCE) / path;
  if (!fs::is_regular_file(whole)) throw std::runtime_error("no such file: " + whole.string());
  return ReadFile(whole);
}

void WriteFile(const fs::path& path, std::string_view text) {
  const fs::path temporary = path.string() + ".new";
  std::ofstream(temporary, std::ios::binary) << text;
  fs::rename(temporary, path);
}

}  // namespace tidegate::test
