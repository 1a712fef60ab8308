// SPDX-License-Identifier: Apache-2.0
#include "tidegate/limiter.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "limiter/wait_queue.hpp"
#include "store/store.hpp"

namespace tidegate {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// The name of the only rule in a limiter's store.
constexpr std::string_view kRule = "limiter";
/// Longer timeouts are cut to this value, because they could overflow the clock.
constexpr Micros kLongestWait = std::chrono::hours{24 * 366};

Decision OrDenied(const Result<Decision>& decision) noexcept {
  return decision ? *decision : Decision{.allowed = false, .never = true, .rule = kRule};
}

}  // namespace

class Limiter::Impl {
 public:
  Impl(const Quota& quota, const MemoryOptions& options)
      : quota_(quota), store_(NewMemoryStore(options)) {
    if (quota.algorithm() == Algorithm::kConcurrency) {
      throw std::invalid_argument("a Limiter cannot count leases; use ConcurrencyLimiter");
    }
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
    WaitQueue::Answers answers;
    queue_.Clear(answers);
    Deliver(answers);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] Charge ChargeOf(std::string_view key, std::int64_t cost) const noexcept {
    return {.rule = kRule, .identity = key, .quota = &quota_, .cost = cost};
  }
  Decision Check(std::string_view key, std::int64_t cost) noexcept {
    return OrDenied(store_->Apply(ChargeOf(key, cost)));
  }

  /// Adds a request to the queue. Callbacks run on this thread if the answer is known at once.
  void Enqueue(WaitQueue::Request request) {
    WaitQueue::Answers answers;
    {
      const std::lock_guard lock(mutex_);
      queue_.Add(std::move(request), SteadyClock::now(), answers);
      if (queue_.next() && !thread_.joinable()) thread_ = std::thread([this] { Serve(); });
    }
    wake_.notify_one();
    Deliver(answers);
  }

  [[nodiscard]] const Quota& quota() const noexcept { return quota_; }
  [[nodiscard]] Store& store() noexcept { return *store_; }

 private:
  static void Deliver(WaitQueue::Answers& answers) {
    for (const auto& [done, decision] : answers) done(decision);
    answers.clear();
  }

  /// Runs on the thread that tries waiting requests again. Enqueue starts it when it is needed.
  void Serve() {
    WaitQueue::Answers answers;
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      wake_.wait_until(lock, queue_.next().value_or(SteadyClock::time_point::max()));
      if (stopping_) return;
      queue_.Run(SteadyClock::now(), answers);
      lock.unlock();
      Deliver(answers);
      lock.lock();
    }
  }

  const Quota quota_;
  const std::unique_ptr<Store> store_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  WaitQueue queue_{[this](std::string_view key, std::int64_t cost) { return Check(key, cost); }};
  std::thread thread_;
};

Limiter::Limiter(const Quota& quota, const MemoryOptions& options)
    : impl_(std::make_unique<Impl>(quota, options)) {}
Limiter::Limiter(Limiter&&) noexcept = default;
Limiter& Limiter::operator=(Limiter&&) noexcept = default;
Limiter::~Limiter() = default;

Decision Limiter::Check(std::string_view key, std::int64_t cost) noexcept {
  return impl_->Check(key, cost);
}

Decision Limiter::Peek(std::string_view key, std::int64_t cost) const noexcept {
  return OrDenied(impl_->store().Peek(impl_->ChargeOf(key, cost)));
}

Decision Limiter::Debit(std::string_view key, std::int64_t cost) noexcept {
  return OrDenied(impl_->store().Debit(impl_->ChargeOf(key, cost)));
}

bool Limiter::Reset(std::string_view key) noexcept {
  const auto effect = impl_->store().Reset(impl_->ChargeOf(key, 1));
  return effect && *effect == Applied::kYes;
}

void Limiter::WhenAllowed(std::string key, Micros timeout,
                          std::function<void(const Decision&)> done, std::int64_t cost) {
  impl_->Enqueue({.key = std::move(key),
                  .cost = cost,
                  .deadline = SteadyClock::now() + std::clamp(timeout, Micros{0}, kLongestWait),
                  .done = std::move(done)});
}

Decision Limiter::WaitUntilAllowed(std::string_view key, Micros timeout, std::int64_t cost) {
  std::promise<Decision> promise;
  auto decision = promise.get_future();
  WhenAllowed(
      std::string{key}, timeout, [&promise](const Decision& answer) { promise.set_value(answer); },
      cost);
  return decision.get();
}

const Quota& Limiter::quota() const noexcept { return impl_->quota(); }

// --- Leases -------------------------------------------------------------------

Lease::Lease(std::shared_ptr<Store> store, const Quota& quota, std::string_view key,
             std::int64_t cost)
    : store_(std::move(store)), quota_(quota), key_(key) {
  // Ids need to differ within one store only.
  static std::atomic<std::uint64_t> leases = 0;
  id_ = std::to_string(leases.fetch_add(1, std::memory_order_relaxed));
  decision_ = OrDenied(store_->Apply(
      Charge{.rule = kRule, .identity = key_, .quota = &quota_, .cost = cost, .lease = id_}));
  if (!decision_.allowed) store_.reset();
}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    Release();
    store_ = std::move(other.store_);
    quota_ = other.quota_;
    key_ = std::move(other.key_);
    id_ = std::move(other.id_);
    decision_ = other.decision_;
  }
  return *this;
}

bool Lease::Renew() noexcept {
  if (store_ == nullptr) return false;
  const auto effect =
      store_->Renew(Charge{.rule = kRule, .identity = key_, .quota = &quota_, .lease = id_});
  if (!effect || *effect == Applied::kNo) store_.reset();
  return store_ != nullptr;
}

void Lease::Release() noexcept {
  if (store_ == nullptr) return;
  (void)store_->Release(Charge{.rule = kRule, .identity = key_, .quota = &quota_, .lease = id_});
  store_.reset();
}

ConcurrencyLimiter::ConcurrencyLimiter(std::int64_t limit, Micros lease_time,
                                       const MemoryOptions& options)
    : store_(NewMemoryStore(options)),
      quota_(Quota::Per(lease_time, limit).Using(Algorithm::kConcurrency)) {}

Lease ConcurrencyLimiter::Acquire(std::string_view key, std::int64_t cost) {
  return {store_, quota_, key, cost};
}

}  // namespace tidegate
