// SPDX-License-Identifier: Apache-2.0
import Redis from 'ioredis';
import { assert } from './harness.mjs';
import { eachStore, inOrder, respServer, room, token } from './resp_server.mjs';

const connect = (port, more = {}) => {
  const client = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: null, ...more });
  client.on('error', () => {});  // Told by what is asked, too.
  return client;
};

async function pipelines(port) {
  const client = connect(port);
  const command = room(1000);
  const pipeline = client.pipeline();
  for (let i = 0; i < 1000; ++i) pipeline.call(...command);
  const answers = await pipeline.exec();
  assert(answers.every(([error]) => error === null), `${answers.find(([error]) => error)}`);
  assert(inOrder(answers.map(([, answer]) => answer)), 'a pipeline is not answered in order');
  assert((await client.call(...command))[0] === 1, 'the next one is denied');
  // One by one, without waiting, between commands that the store does not see.
  const mixed = await Promise.all(Array.from({ length: 1000 }, (_, i) =>
    i % 2 ? client.echo(String(i)) : client.call('CL.THROTTLE', `mixed-${i}`, '1', '1', '60')));
  assert(mixed.every((answer, i) => (i % 2 ? answer === String(i) : answer[0] === 0)), 'mixed');
  const refused = await client.call('CL.THROTTLE', 'x', '1', '0', '60').catch((error) => error.message);
  assert(/^ERR /.test(refused), `a rate of zero: ${refused}`);
  await client.quit();
}

async function passwords(options) {
  const server = await respServer({ ...options, auth: 'required' });
  for (const more of [{ password: token }, { username: 'clients', password: token }]) {
    const client = connect(server.port, more);
    assert((await client.call('CL.THROTTLE', 'x', '9', '1', '60'))[0] === 0, 'with a password');
    await client.quit();
  }
  const stranger = connect(server.port, { password: 'wrong', retryStrategy: null });
  const refused = await stranger.call('CL.THROTTLE', 'x', '9', '1', '60').catch((error) => error.message);
  assert(/WRONGPASS|NOAUTH/.test(refused), `with a wrong one: ${refused}`);
  stranger.disconnect();
  await server.stop();
}

/** The server goes and another one comes in its place: what is asked meanwhile is answered then. */
async function reconnects(options, server) {
  const client = connect(server.port, { retryStrategy: () => 50 });
  assert(await client.ping() === 'PONG', 'before');
  const closed = new Promise((resolve) => client.once('close', resolve));
  await server.stop('SIGKILL');
  await closed;
  const later = client.call('CL.THROTTLE', 'later', '9', '1', '60');
  const next = await respServer({ ...options, port: server.port });
  assert((await later)[0] === 0, 'after');
  await client.quit();
  assert(await next.stop() === 0, 'it does not end well');
}

export async function ioredisCheck() {
  await eachStore(async (options) => {
    const server = await respServer(options);
    await pipelines(server.port);
    await reconnects(options, server);
    await passwords(options);
  });
  return 'pipelines of 1,000 in order, passwords, a server that goes and comes back; both stores';
}
