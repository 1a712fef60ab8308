// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/random.hpp"
#include "net/timer.hpp"
#include "store/redis/directory.hpp"
#include "store/redis/sentinel_view.hpp"

namespace tidegate::redis {
namespace {

/// The one master that the sentinels name: asks one of them, and subscribes to its messages.
class SentinelDirectory final : public Directory, private Link::Listener, private net::Timer {
 public:
  SentinelDirectory(net::Reactor& reactor, Host& host, ClientStats& stats, Link::Options link,
                    std::vector<Endpoint> sentinels, const std::string& master_name)
      : net::Timer(reactor.timers()),
        reactor_(reactor),
        host_(host),
        stats_(stats),
        link_options_(std::move(link)),
        view_(std::move(sentinels), master_name, RandomSeed()) {}

  void Start() override {
    stopped_ = false;
    Connect();
  }
  void Stop() override {
    stopped_ = true;
    Disarm();
    Leave();
  }
  [[nodiscard]] std::uint64_t version() const noexcept override { return version_; }
  [[nodiscard]] const Endpoint* OwnerOf(Slot) const noexcept override {
    return view_.master() ? &*view_.master() : nullptr;
  }
  [[nodiscard]] std::vector<Endpoint> Owners() const override {
    return view_.master() ? std::vector{*view_.master()} : std::vector<Endpoint>{};
  }
  void OnTrouble() override {
    view_.OnTrouble(Clock::now());
    Arm();
  }
  void OnNodeWell() override { view_.OnWell(); }

 private:
  /// A sentinel that has not answered for so long is left for another one.
  static constexpr std::chrono::milliseconds kPatience{500};

  // Link::Listener
  void OnLinkUp(const Greeting&) override {
    view_.OnConnected(Clock::now());
    if (Clock::now() >= view_.ask_at()) Ask();
    Arm();
  }
  void OnLinkReply(const Reply& reply) override {
    const auto news = view_.OnReply(reply, Clock::now());
    // If it is known when to ask again, all replies have come.
    if (view_.ask_at() != Clock::time_point::max()) patience_ends_ = Clock::time_point::max();
    Take(news);
  }
  void OnLinkPush(const Reply& push) override { Take(view_.OnPush(push, Clock::now())); }
  void OnLinkDown(ErrorKind kind, const std::string& problem) override {
    const Endpoint sentinel = link_->endpoint();
    patience_ends_ = Clock::time_point::max();
    if (kind != ErrorKind::kOther) stats_.errors[static_cast<std::size_t>(kind)].Add();
    view_.OnLost(Clock::now());
    host_.OnDirectoryProblem(sentinel, kind, problem);
    Arm();
  }
  void OnTimer(Clock::time_point now) override;

  void Connect();
  /// Drops the connection, if there is one.
  void Leave() {
    patience_ends_ = Clock::time_point::max();
    if (link_ == nullptr) return;
    link_->Close();
    reactor_.Bury(link_.release());  // One of its methods may be running.
  }
  void Ask();
  void Take(SentinelView::News news);
  void Arm();

  net::Reactor& reactor_;
  Host& host_;
  ClientStats& stats_;
  Link::Options link_options_;
  SentinelView view_;
  std::unique_ptr<Link> link_;
  Clock::time_point patience_ends_ = Clock::time_point::max();
  std::uint64_t version_ = 0;
  bool stopped_ = true;
};

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

void SentinelDirectory::OnTimer(Clock::time_point now) {
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
    case SentinelView::News::kNothing: break;
    case SentinelView::News::kMaster:
      ++version_;
      host_.OnDirectory();
      break;
    case SentinelView::News::kUseless: return link_->Fail(ErrorKind::kOther, view_.problem());
  }
  Arm();
}

}  // namespace

std::unique_ptr<Directory> NewSentinelDirectory(net::Reactor& reactor, Directory::Host& host,
                                                ClientStats& stats, Link::Options link,
                                                std::vector<Endpoint> sentinels,
                                                const std::string& master_name) {
  return std::make_unique<SentinelDirectory>(reactor, host, stats, std::move(link),
                                             std::move(sentinels), master_name);
}

}  // namespace tidegate::redis
