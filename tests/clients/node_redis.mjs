// SPDX-License-Identifier: Apache-2.0
// The npm package `redis`, versions 5 and 6, with both versions of the protocol.
import { createClient as createClient5 } from 'redis5';
import { createClient as createClient6 } from 'redis6';
import { assert } from './harness.mjs';
import { eachStore, inOrder, respServer, room, token } from './resp_server.mjs';
import { checkRespSnippet } from './snippets.mjs';

let createClient = createClient5;
async function connect(port, more = {}, socket = {}) {
  const client = createClient({ socket: { port, host: '127.0.0.1', ...socket }, ...more });
  client.on('error', () => {});  // The commands report the error, too.
  await client.connect();
  return client;
}

async function pipelines(port, RESP) {
  const client = await connect(port, { RESP });
  const command = room(1000);
  const answers = await Promise.all(Array.from({ length: 1000 }, () => client.sendCommand(command)));
  assert(inOrder(answers), 'the replies to a pipeline are not in order');
  assert((await client.sendCommand(command))[0] === 1, 'the command after the pipeline was not denied');
  const decision = await client.sendCommand(['TG.DECIDE', 'per-key', `resp-${RESP}-${process.hrtime.bigint()}`]);
  assert(decision.length === 7 && decision[0] === 0 && decision[2] === 99 && decision[5] === 'store', JSON.stringify(decision));
  const map = await client.sendCommand(['TG.PEEK', 'per-key', 'map', 'MAP']);
  assert(RESP === 3 ? map.allowed === 1 && map.limit === 100 : map[0] === 'allowed' && map[1] === 1, JSON.stringify(map));
  await client.close();
}

/** Runs the program of docs/resp.md, with the equivalent call of node-redis. */
async function program(options, RESP) {
  const server = await respServer({ ...options, auth: 'required' });
  const client = await connect(server.port, { RESP, password: token });
  await checkRespSnippet({ call: (...words) => client.sendCommand(words) }, server);
  await client.close();
  await server.stop();
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
  assert(await next.stop() === 0, 'the server did not exit with code 0');
}

export async function nodeRedisCheck() {
  for (const create of [createClient5, createClient6]) {
    createClient = create;
    await eachStore(async (options) => {
      for (const RESP of [2, 3]) {
        const server = await respServer(options);
        await pipelines(server.port, RESP);
        await reconnects(options, server, RESP);
        await passwords(options, RESP);
        await program(options, RESP);
      }
    });
  }
  return 'node-redis 5 and 6, each in RESP2 and RESP3: the program of docs/resp.md, pipelines of 1,000 in order, passwords, a server that restarts; both stores';
}
