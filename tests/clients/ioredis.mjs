// SPDX-License-Identifier: Apache-2.0
// ioredis 5, which uses version 2 of the protocol, and ioredis 6, which uses version 3 by default.
import Redis5 from 'ioredis5';
import Redis6 from 'ioredis6';
import { assert } from './harness.mjs';
import { eachStore, inOrder, respServer, room, token } from './resp_server.mjs';
import { checkRespSnippet } from './snippets.mjs';

/** Returns a function that connects with this version of the package. */
const connector = (Redis, protocol) => (port, more = {}) => {
  const client = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: null, ...protocol, ...more });
  client.on('error', () => {});  // The commands report the error, too.
  return client;
};

/** Checks all values of a decision, and the replies to the other commands that docs/resp.md lists. */
async function decisions(connect, server) {
  const client = connect(server.port);
  const key = `${process.hrtime.bigint()}`;
  const [limited, limit, remaining, retry, reset, decidedBy, reason, ...more] = await client.call('TG.DECIDE', 'one', key);
  assert(limited === 0 && limit === 1 && remaining === 0 && retry === -1 && reset > 3_590_000 && reset <= 3_600_000 &&
    decidedBy === 'store' && reason === 'quota' && more.length === 0, JSON.stringify([limited, limit, remaining, retry, reset, decidedBy, reason, more]));
  assert((await client.call('TG.PEEK', 'one', key))[0] === 1, 'TG.PEEK');
  assert(await client.call('TG.REFUND', 'one', key, 'ID', 'r1') === 1, 'TG.REFUND');
  assert((await client.call('TG.DEBIT', 'one', key, 'COST', '1'))[2] === 0, 'TG.DEBIT');
  assert(await client.call('TG.RESET', 'one', key) === 1 && await client.call('TG.RESET', 'one', key) === 0, 'TG.RESET');
  // ioredis returns a map as a flat array with both versions, unless `replyMapping` is set.
  const map = await client.call('TG.PEEK', 'one', key, 'MAP');
  assert(map.slice(0, 4).join() === 'allowed,1,rule,one' && map[1] === 1, JSON.stringify(map));
  const none = await client.call('TG.DECIDE', 'nope', key).catch((error) => error.message);
  assert(/^ERR there is no rule/.test(none), `an unknown rule: ${none}`);
  await checkRespSnippet(client, server);
  await client.quit();
}

async function pipelines(connect, port) {
  const client = connect(port);
  const command = room(1000);
  const pipeline = client.pipeline();
  for (let i = 0; i < 1000; ++i) pipeline.call(...command);
  const answers = await pipeline.exec();
  assert(answers.every(([error]) => error === null), `${answers.find(([error]) => error)}`);
  assert(inOrder(answers.map(([, answer]) => answer)), 'the replies to a pipeline are not in order');
  assert((await client.call(...command))[0] === 1, 'the command after the pipeline was not denied');
  // Single commands without waiting for replies, mixed with commands that need no store.
  const mixed = await Promise.all(Array.from({ length: 1000 }, (_, i) =>
    i % 2 ? client.echo(String(i)) : client.call('CL.THROTTLE', `mixed-${i}`, '1', '1', '60')));
  assert(mixed.every((answer, i) => (i % 2 ? answer === String(i) : answer[0] === 0)), 'mixed');
  const refused = await client.call('CL.THROTTLE', 'x', '1', '0', '60').catch((error) => error.message);
  assert(/^ERR /.test(refused), `a rate of zero: ${refused}`);
  await client.quit();
}

async function passwords(connect, options) {
  const server = await respServer({ ...options, auth: 'required' });
  for (const more of [{ password: token }, { username: 'clients', password: token }]) {
    const client = connect(server.port, more);
    assert((await client.call('CL.THROTTLE', 'x', '9', '1', '60'))[0] === 0, 'with a password');
    await client.quit();
  }
  const unauthenticated = connect(server.port, { password: 'wrong', retryStrategy: null });
  const refused = await unauthenticated.call('CL.THROTTLE', 'x', '9', '1', '60').catch((error) => error.message);
  assert(/WRONGPASS|NOAUTH/.test(refused), `with a wrong one: ${refused}`);
  unauthenticated.disconnect();
  await server.stop();
}

/** Checks that a command sent while the server restarts gets its reply afterwards. */
async function reconnects(connect, options, server) {
  const client = connect(server.port, { retryStrategy: () => 50 });
  assert(await client.ping() === 'PONG', 'before');
  const closed = new Promise((resolve) => client.once('close', resolve));
  await server.stop('SIGKILL');
  await closed;
  const later = client.call('CL.THROTTLE', 'later', '9', '1', '60');
  const next = await respServer({ ...options, port: server.port });
  assert((await later)[0] === 0, 'after');
  await client.quit();
  assert(await next.stop() === 0, 'the server did not exit with code 0');
}

export async function ioredisCheck() {
  const connectors = { 'ioredis 5': connector(Redis5), 'ioredis 6': connector(Redis6), 'ioredis 6 in RESP2': connector(Redis6, { protocol: 2 }) };
  for (const [name, connect] of Object.entries(connectors)) {
    await eachStore(async (options) => {
      const server = await respServer({ ...options, auth: 'required' });
      const withToken = (port, more) => connect(port, { password: token, ...more });
      await decisions(withToken, server);
      await server.stop();
      const open = await respServer(options);
      await pipelines(connect, open.port);
      await reconnects(connect, options, open);
      await passwords(connect, options);
    }).catch((error) => { throw new Error(`${name}: ${error.stack ?? error}`); });
  }
  return `${Object.keys(connectors).join(', ')}: the program of docs/resp.md, each command, pipelines of 1,000 in order, passwords, a server that restarts; both stores`;
}
