// SPDX-License-Identifier: Apache-2.0
// The package `redis`, in both versions of the protocol.
import { createClient } from 'redis';
import { assert } from './harness.mjs';
import { eachStore, inOrder, respServer, room, token } from './resp_server.mjs';

async function connect(port, more = {}, socket = {}) {
  const client = createClient({ socket: { port, host: '127.0.0.1', ...socket }, ...more });
  client.on('error', () => {});  // Told by what is asked, too.
  await client.connect();
  return client;
}

async function pipelines(port, RESP) {
  const client = await connect(port, { RESP });
  const command = room(1000);
  const answers = await Promise.all(Array.from({ length: 1000 }, () => client.sendCommand(command)));
  assert(inOrder(answers), 'a pipeline is not answered in order');
  assert((await client.sendCommand(command))[0] === 1, 'the next one is denied');
  const decision = await client.sendCommand(['TG.DECIDE', 'per-key', `resp-${RESP}`]);
  if (RESP === 3) {
    assert(decision.allowed === true && decision.remaining === 99, JSON.stringify(decision));
  } else {
    assert(decision[0] === 0 && decision[2] === 99, JSON.stringify(decision));
  }
  await client.close();
}

async function passwords(options, RESP) {
  const server = await respServer({ ...options, auth: 'required' });
  for (const more of [{ password: token }, { username: 'clients', password: token }]) {
    const client = await connect(server.port, { RESP, ...more });
    assert(await client.ping() === 'PONG', 'with a password');
    await client.close();
  }
  const refused = await connect(server.port, { RESP, password: 'wrong' }, { reconnectStrategy: false })
    .then(() => 'let in', (error) => error.message);
  assert(/WRONGPASS/.test(refused), `with a wrong one: ${refused}`);
  await server.stop();
}

async function reconnects(options, server, RESP) {
  const client = await connect(server.port, { RESP }, { reconnectStrategy: () => 50 });
  assert(await client.ping() === 'PONG', 'before');
  const closed = new Promise((resolve) => client.once('reconnecting', resolve));
  await server.stop('SIGKILL');
  await closed;
  const later = client.sendCommand(['CL.THROTTLE', `later-${RESP}`, '9', '1', '60']);
  const next = await respServer({ ...options, port: server.port });
  assert((await later)[0] === 0, 'after');
  await client.close();
  assert(await next.stop() === 0, 'it does not end well');
}

export async function nodeRedisCheck() {
  await eachStore(async (options) => {
    for (const RESP of [2, 3]) {
      const server = await respServer(options);
      await pipelines(server.port, RESP);
      await reconnects(options, server, RESP);
      await passwords(options, RESP);
    }
  });
  return 'RESP2 and RESP3: pipelines of 1,000 in order, passwords, a server that goes and comes back; both stores';
}
