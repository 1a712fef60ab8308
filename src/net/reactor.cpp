// SPDX-License-Identifier: Apache-2.0
#include "net/reactor.hpp"

#include <pthread.h>
#include <sched.h>

#include <boost/asio/post.hpp>
#include <utility>

namespace tidegate::net {

// Descriptors are used by the reactor's thread alone and need no locks; tasks come from others.
Reactor::Reactor(const std::array<Deadlines::Duration, Deadlines::kKinds>& deadlines)
    : context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      work_(context_.get_executor()),
      deadlines_(context_, deadlines) {}

Reactor::~Reactor() = default;

void Reactor::Run(std::optional<int> core) {
  if (core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(*core), &set);
    // Where the system forbids it the thread runs wherever it is put: slower, not wrong.
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  }
  context_.run();
}

void Reactor::Stop() { context_.stop(); }

void Reactor::Post(std::function<void()> task) {
  boost::asio::post(context_, std::move(task));
}

}  // namespace tidegate::net
