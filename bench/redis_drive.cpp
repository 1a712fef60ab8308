// SPDX-License-Identifier: Apache-2.0
#include "redis_drive.hpp"

#include <stdexcept>
#include <utility>

namespace tidegate::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

redis::RedisUrl UrlOf(int redis_port) {
  redis::RedisUrl url;
  url.hosts = {{.host = "127.0.0.1", .port = static_cast<std::uint16_t>(redis_port)}};
  return url;
}

RedisStore::Options OptionsOf(const redis::RedisUrl& url) {
  RedisStore::Options options;
  options.redis.url = url;
  // Only costs are measured here: a long deadline, so that other load on the machine does not turn
  // requests into failures.
  options.redis.deadline = milliseconds{500};
  return options;
}

}  // namespace

RedisStoreHost::RedisStoreHost(int redis_port, int core)
    : RedisStoreHost(UrlOf(redis_port), core, 1) {}

RedisStoreHost::RedisStoreHost(const redis::RedisUrl& url, int core, std::size_t nodes)
    : reactor_({seconds{60}, seconds{10}, seconds{30}, seconds{30}, seconds{1}}),
      redis_store_(reactor_, OptionsOf(url), *local_),
      thread_([this, core] { reactor_.Run(core); }) {
  Do([this] { redis_store_.Connect(); });
  for (int i = 0; redis_store_.redis_stats().connected.get() < nodes; ++i) {
    if (i == 500) throw std::runtime_error("the RedisStore cannot connect to Redis");
    std::this_thread::sleep_for(milliseconds{10});
  }
}

RedisStoreHost::~RedisStoreHost() {
  reactor_.Post([this] {
    redis_store_.Shutdown();
    reactor_.Stop();
  });
  thread_.join();
}

void RedisStoreHost::Do(const std::function<void()>& task) {
  const auto done = std::make_shared<std::promise<void>>();
  reactor_.Post([&task, done] {
    task();
    done->set_value();
  });
  done->get_future().wait();
}

void ClosedLoop::Begin(const Load& load) {
  promise_ = {};
  done_ = promise_.get_future();
  host_.reactor().Post([this, load] {
    load_ = load;
    outcome_ = {};
    started_ = 0;
    begun_ = Clock::now();
    while (questions_.size() < load_.concurrent) {
      questions_.push_back(std::make_unique<Question>(this, [](Call& call) noexcept {
        auto& question = static_cast<Question&>(call);
        auto& loop = *static_cast<ClosedLoop*>(question.owner);
        if (loop.finished_.empty()) loop.host_.reactor().Again(loop);
        loop.finished_.push_back(&question);
      }));
    }
    // All requests count as finished just now, so that StartAll() starts them.
    under_way_ = load_.concurrent;
    for (std::size_t i = 0; i < load_.concurrent; ++i) finished_.push_back(questions_[i].get());
    StartAll();
  });
}

void ClosedLoop::StartAll() {
  starting_.clear();
  std::swap(starting_, finished_);
  const bool goes_on = Clock::now() - begun_ < std::chrono::duration<double>(load_.seconds);
  for (Question* const question : starting_) {
    if (!goes_on || started_ == load_.most) {
      --under_way_;
      continue;
    }
    ++started_;
    question->Name(identities_[load_.draws->Next()], *load_.quota);
    host_.redis_store().Start(*question);
  }
  if (under_way_ > 0) return;
  outcome_.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  // The waiting thread may start the next run before set_value() returns, so the promise is moved
  // away first.
  auto promise = std::move(promise_);
  promise.set_value(outcome_);
}

void ClosedLoop::OnReady(std::uint32_t) {
  for (const Question* const question : finished_) {
    ++outcome_.decisions;
    if (question->allowed) ++outcome_.allowed;
    if (!question->exact()) ++outcome_.inexact;
  }
  StartAll();
}

}  // namespace tidegate::bench
