// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "figures.hpp"

namespace {

using tidegate::figures::Svg;

struct Figure {
  const char* file;
  Svg (*draw)();
};

constexpr std::array<Figure, 9> kFigures = {{
    {"six.svg", tidegate::figures::DrawSix},
    {"clock-steps.svg", tidegate::figures::DrawClockSteps},
    {"token-bucket.svg", tidegate::figures::DrawTokenBucket},
    {"gcra.svg", tidegate::figures::DrawGcra},
    {"sliding-log.svg", tidegate::figures::DrawSlidingLog},
    {"concurrency.svg", tidegate::figures::DrawConcurrency},
    {"fixed-window.svg", tidegate::figures::DrawFixedWindow},
    {"sliding-window.svg", tidegate::figures::DrawSlidingWindow},
    {"sliding-window-error.svg", tidegate::figures::DrawSlidingError},
}};

int DrawAll(const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  for (const Figure& figure : kFigures) {
    if (!figure.draw().Save(folder / figure.file)) {
      std::fprintf(stderr, "figures: cannot write %s\n", (folder / figure.file).c_str());
      return 1;
    }
    std::printf("%s\n", (folder / figure.file).c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--examples") {
    tidegate::figures::PrintExamples();
    return 0;
  }
  if (argc == 2 && argv[1][0] != '-') return DrawAll(argv[1]);
  std::fprintf(stderr,
               "usage: figures FOLDER      draws every figure into FOLDER\n"
               "       figures --examples  prints the worked examples\n");
  return 2;
}
