// SPDX-License-Identifier: Apache-2.0
#include "limiter/wait_queue.hpp"

#include <algorithm>

namespace tidegate {

void WaitQueue::Add(Request request, TimePoint now, Answers& answers) {
  const std::string key = request.key;
  Line& line = lines_[key];
  line.push_back({.request = std::move(request), .id = ++last_id_});
  if (line.size() > 1) {
    Schedule(line.back(), line.back().request.deadline);
  } else {
    Advance(key, now, answers);
  }
}

void WaitQueue::Run(TimePoint now, Answers& answers) {
  while (!due_.empty() && due_.begin()->first <= now) {
    const auto [id, key] = due_.begin()->second;
    Line& line = lines_.at(key);
    if (line.front().id == id) {
      Advance(key, now, answers);
      continue;
    }
    // The request was behind others until its deadline and was never tried.
    const auto late = std::ranges::find(line, id, &Waiting::id);
    Answer(line, late, line.front().denial, answers);
  }
}

void WaitQueue::Clear(Answers& answers) {
  for (auto& [key, line] : lines_) {
    for (Waiting& waiting : line) {
      answers.emplace_back(std::move(waiting.request.done), waiting.denial);
    }
  }
  lines_.clear();
  due_.clear();
}

void WaitQueue::Advance(const std::string& key, TimePoint now, Answers& answers) {
  Line& line = lines_.at(key);
  while (!line.empty()) {
    Waiting& first = line.front();
    const Decision decision = check_(key, first.request.cost);
    const TimePoint retry = now + decision.retry_after;
    if (!decision.allowed && !decision.never && retry <= first.request.deadline) {
      first.denial = decision;
      Schedule(first, retry);
      return;
    }
    Answer(line, line.begin(), decision, answers);
  }
  lines_.erase(key);
}

void WaitQueue::Schedule(Waiting& waiting, TimePoint due) {
  due_.erase({waiting.due, {waiting.id, waiting.request.key}});
  waiting.due = due;
  due_.insert({due, {waiting.id, waiting.request.key}});
}

void WaitQueue::Answer(Line& line, const Line::iterator& which, const Decision& decision,
                       Answers& answers) {
  due_.erase({which->due, {which->id, which->request.key}});
  answers.emplace_back(std::move(which->request.done), decision);
  line.erase(which);
}

}  // namespace tidegate
