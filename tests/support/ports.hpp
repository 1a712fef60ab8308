// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::test {

/// Returns a port of 127.0.0.1 that no process listens on and that no other test gets before this
/// process ends. It lies below the ports that the kernel assigns, so no outgoing connection takes
/// it before its server starts or while that server is down.
[[nodiscard]] int FreePort();

/// The same for a node of a Redis cluster: the port 10,000 above it, the cluster bus, is free too.
[[nodiscard]] int FreeClusterPort();

/// Returns a blocking connection to 127.0.0.1:`port`, or -1. `from`: the loopback address that it
/// comes from, such as 127.0.0.9; empty: 127.0.0.1.
[[nodiscard]] int ConnectTo(int port, const char* from = "");

}  // namespace tidegate::test
