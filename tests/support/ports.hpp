// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tidegate::test {

/// Returns a port of 127.0.0.1 on which no process listens and which no other test process gets
/// before this one ends. The port lies below the range that the kernel assigns, so no outgoing
/// connection takes it before its server starts or while its server is down.
[[nodiscard]] int FreePort();

/// Returns such a port for a node of a Redis Cluster: the port of the cluster bus, 10,000 above it,
/// is free too.
[[nodiscard]] int FreeClusterPort();

/// Returns a blocking connection to 127.0.0.1:`port`, or -1. `from` is the loopback source address,
/// such as 127.0.0.9; empty: 127.0.0.1.
[[nodiscard]] int ConnectTo(int port, const char* from = "");

}  // namespace tidegate::test
