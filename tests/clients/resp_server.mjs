// SPDX-License-Identifier: Apache-2.0
// Starts a tidegate with the RESP frontend, once for each kind of store.
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { accepting, folder, freePort, start } from './harness.mjs';

export const token = 'a-token-of-32-characters-at-least';
const tokens = path.join(folder, 'tokens');
fs.writeFileSync(tokens, `clients ${token}\n`);

let configs = 0;
/** Starts a server. `redis`: port of the store's Redis; undefined: memory store. `auth`: whether clients must authenticate. */
export async function respServer({ redis, auth = 'open', port } = {}) {
  port ??= await freePort();
  const admin = await freePort();
  const file = path.join(folder, `resp-${++configs}.yaml`);
  // The deadline is long, so that a busy machine causes no decisions without Redis.
  const store = redis ? `store: { url: "redis://127.0.0.1:${redis}", on_failure: closed, deadline: 5s }\n` : '';
  fs.writeFileSync(file, `listen: { resp: { address: "127.0.0.1:${port}", auth: ${auth} }, api: off, admin: "127.0.0.1:${admin}" }
access: { tokens: "file:${tokens}" }
${store}rules:
  - { id: per-key, per: header:x-api-key, limit: 100/h }
  - { id: one, per: header:x-api-key, limit: 1/h }\n`);
  const child = start(process.env.TIDEGATE ?? 'build/release/tidegate', ['serve', '--config', file, '--threads', '2']);
  await accepting(port, 'tidegate').catch((error) => { throw new Error(`${error}\n${child.output}`); });
  return { child, port, admin, token, stop: (signal = 'SIGTERM') => { child.kill(signal); return child.ended; } };
}

/** Calls `check(options, store)` for both kinds of store, with options for respServer(). */
export async function eachStore(check) {
  const redis = await freePort();
  const child = start('redis-server', ['--port', String(redis), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']);
  await accepting(redis, 'redis-server');
  for (const [store, options] of [['memory', {}], ['Redis', { redis }]]) {
    await check(options, store).catch((error) => { throw new Error(`the ${store} store: ${error.stack ?? error}`); });
  }
  child.kill('SIGTERM');
  await child.ended;
}

/** Sends these bytes and returns the reply up to `end`, or up to the end of the connection. */
export function say(port, bytes, end) {
  return new Promise((resolve, reject) => {
    let said = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(bytes));
    const late = setTimeout(() => { socket.destroy(); reject(new Error(`only ${JSON.stringify(said)}`)); }, 5000);
    const done = () => { clearTimeout(late); socket.destroy(); resolve(said); };
    socket.setEncoding('latin1').on('error', reject).on('close', done)
      .on('data', (text) => { said += text; if (end && said.endsWith(end)) done(); });
  });
}

/** Returns the expected five integers of the nth of `count` allowed requests for one key. */
export const room = (count) => ['CL.THROTTLE', `room-${++configs}-${process.hrtime.bigint()}`, String(count - 1), '1', '3600'];
export function inOrder(answers) {
  return answers.every((answer, i) => answer.length === 5 && Number(answer[0]) === 0 &&
    Number(answer[1]) === answers.length && Number(answer[2]) === answers.length - 1 - i && Number(answer[3]) === -1);
}
