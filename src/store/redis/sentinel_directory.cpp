// SPDX-License-Identifier: Apache-2.0
#include "store/redis/sentinel_directory.hpp"

#include <algorithm>
#include <utility>

#include "store/redis/seed.hpp"

namespace tidegate::redis {
namespace {

using Clock = std::chrono::steady_clock;

/// A sentinel that has not answered for so long is left for another one.
constexpr std::chrono::milliseconds kPatience{500};

}  // namespace

SentinelDirectory::SentinelDirectory(net::Reactor& reactor, Host& host, ClientStats& stats,
                                     Link::Options link, std::vector<Endpoint> sentinels,
                                     const std::string& master_name)
    : net::Timer(reactor.timers()),
      reactor_(reactor),
      host_(host),
      stats_(stats),
      link_options_(std::move(link)),
      view_(std::move(sentinels), master_name, Seed()) {}

SentinelDirectory::~SentinelDirectory() = default;

void SentinelDirectory::Start() {
  stopped_ = false;
  Connect();
}

void SentinelDirectory::Stop() {
  stopped_ = true;
  Disarm();
  Leave();
}

std::vector<Endpoint> SentinelDirectory::Owners() const {
  if (!view_.master()) return {};
  return {*view_.master()};
}

void SentinelDirectory::Leave() {
  patience_ends_ = Clock::time_point::max();
  if (link_ == nullptr) return;
  link_->Close();
  // This may be one of its own calls.
  reactor_.Bury(link_.release());
}

void SentinelDirectory::Connect() {
  Leave();
  link_options_.endpoint = view_.sentinel();
  Link::Listener& listener = *this;
  link_ = std::make_unique<Link>(reactor_, link_options_, listener);
  link_->Open();
  Arm();
}

void SentinelDirectory::Ask() {
  stats_.refreshes.Add();
  view_.Ask(link_->out(), Clock::now());
  patience_ends_ = Clock::now() + kPatience;
  link_->Flush();
}

void SentinelDirectory::OnTimer(net::Timer::Clock::time_point now) {
  if (stopped_) return;
  if (link_ == nullptr || link_->closed()) {
    if (now >= view_.connect_at()) return Connect();
  } else if (link_->up()) {
    if (now >= patience_ends_) {
      return link_->Fail(ErrorKind::kOther, link_->Shown() + " does not answer");
    }
    if (now >= view_.ask_at()) Ask();
  }
  Arm();
}

void SentinelDirectory::Arm() {
  if (stopped_) return;
  auto due = Clock::time_point::max();
  if (link_ == nullptr || link_->closed()) {
    due = view_.connect_at();
  } else if (link_->up()) {
    due = std::min(view_.ask_at(), patience_ends_);
  }
  if (due == Clock::time_point::max()) return Disarm();
  ArmAt(due);
}

void SentinelDirectory::Take(SentinelView::News news) {
  switch (news) {
    case SentinelView::News::kNothing:
      break;
    case SentinelView::News::kMaster:
      ++version_;
      host_.OnDirectory();
      break;
    case SentinelView::News::kUseless:
      return link_->Fail(ErrorKind::kOther, view_.problem());
  }
  Arm();
}

void SentinelDirectory::OnLinkUp(const Greeting&) {
  view_.OnConnected(Clock::now());
  if (Clock::now() >= view_.ask_at()) Ask();
  Arm();
}

void SentinelDirectory::OnLinkReply(const Reply& reply) {
  const auto news = view_.OnReply(reply, Clock::now());
  // It asks again at some time: all that it was asked is answered.
  if (view_.ask_at() != Clock::time_point::max()) patience_ends_ = Clock::time_point::max();
  Take(news);
}

void SentinelDirectory::OnLinkPush(const Reply& push) { Take(view_.OnPush(push, Clock::now())); }

void SentinelDirectory::OnLinkDown(ErrorKind kind, const std::string& problem) {
  const Endpoint asked = link_->endpoint();
  patience_ends_ = Clock::time_point::max();
  if (kind != ErrorKind::kOther) stats_.errors[static_cast<std::size_t>(kind)].Add();
  view_.OnLost(Clock::now());
  host_.OnDirectoryProblem(asked, kind, problem);
  Arm();
}

void SentinelDirectory::OnTrouble() {
  view_.OnTrouble(Clock::now());
  Arm();
}

}  // namespace tidegate::redis
