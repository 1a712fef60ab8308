// SPDX-License-Identifier: Apache-2.0
#include "cli/last_error.hpp"

#include "cli/human.hpp"

namespace tidegate::cli {

std::string LastErrorText(const Members& error) {
  std::string text = "last error " + error.Text("reason");
  if (error.Has("age_ms")) text += " " + Span(error.Ms("age_ms")) + " ago";
  if (!error.Text("message").empty()) text += ": " + error.Text("message");
  return text;
}

}  // namespace tidegate::cli
