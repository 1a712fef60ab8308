// SPDX-License-Identifier: Apache-2.0
#include "cli/top_model.hpp"

#include <utility>

namespace tidegate::cli {

void TopModel::OnAnswer(Asked<TopSample> answer) {
  if (!answer) {
    problem_ = answer.error().message;
    return;
  }
  problem_.clear();
  heard_ = answer->at;
  // Paused, what is shown stays; what comes is kept, so that the next rates are of one interval.
  if (!paused_) view_ = ViewOf(now_ ? &*now_ : nullptr, *answer);
  now_ = std::move(*answer);
}

TopModel::Next TopModel::OnKey(char key) {
  switch (key) {
    case 'q':
    case 'Q':
      return Next::kQuit;
    case 'p':
    case 'P':
      paused_ = !paused_;
      break;
    case 'r':
      by_ = HotBy::kRequests;
      break;
    case 'd':
      by_ = HotBy::kDenials;
      break;
    case 'c':
      by_ = HotBy::kCost;
      break;
    default:
      break;
  }
  return Next::kStay;
}

View TopModel::ViewAt(Instant now) const {
  View view = view_;
  view.server = server_;
  view.by = by_;
  view.paused = paused_;
  view.problem = problem_;
  view.silent = std::chrono::floor<std::chrono::milliseconds>(now - heard_);
  return view;
}

}  // namespace tidegate::cli
