// SPDX-License-Identifier: Apache-2.0
// redis-cli, and commands that people type by hand.
import { assert, run } from './harness.mjs';
import { eachStore, respServer, say, token } from './resp_server.mjs';

const encoded = (args) => `*${args.length}\r\n` + args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('');

async function commands({ port }) {
  const cli = (...args) => run('redis-cli', ['-p', String(port), ...args]).then(({ out }) => out.trim());
  const command = ['CL.THROTTLE', 'by-cli', '1', '1', '60'];
  const answers = [await cli(...command), await cli(...command), await cli(...command)];
  assert(answers[0] === '0\n2\n1\n-1\n60', answers[0]);
  assert(/^0\n2\n0\n-1\n1[12]\d$/.test(answers[1]), answers[1]);
  assert(/^1\n2\n0\n(60|5\d)\n1[12]\d$/.test(answers[2]), answers[2]);
  const key = `${process.hrtime.bigint()}`;
  for (const [version, remaining] of [['-2', 99], ['-3', 98]]) {
    const decision = await cli(version, 'TG.DECIDE', 'per-key', key);
    assert(new RegExp(`^0\n100\n${remaining}\n-1\n\\d+\nstore\nquota$`).test(decision), `${version}: ${decision}`);
  }
  assert((await cli('-3', 'TG.PEEK', 'per-key', key, 'MAP')).startsWith('allowed 1\nrule per-key\nlimit 100\nremaining 98\n'), 'a map in RESP3');
  assert((await cli('-2', 'TG.PEEK', 'per-key', key, 'MAP')).startsWith('allowed\n1\nrule\nper-key\nlimit\n100\nremaining\n98\n'), 'a map in RESP2');
  // The example in docs/resp.md: a key keeps its state when a request uses another quota.
  for (const version of ['-2', '-3']) {
    assert(await cli(version, 'CL.THROTTLE', `${key}${version}`, '0', '1', '3600') === '0\n1\n0\n-1\n3600', 'an hour');
    assert(/^1\n10\n0\n35(46|45)\n(3600|3599)$/.test(await cli(version, 'CL.THROTTLE', `${key}${version}`, '9', '10', '60')), 'another quota');
  }
  assert((await cli('CL.THROTTLE', 'x')).startsWith('ERR CL.THROTTLE needs: key max_burst'), 'too few arguments');
  assert((await cli('GET', 'x')).startsWith("ERR unknown command 'GET'"), 'no such command');
}

/** On a terminal, redis-cli first sends COMMAND DOCS and builds its help from the reply. */
async function interactive({ port }) {
  const { out } = await run('script', ['-qec', `redis-cli -p ${port}`, '/dev/null'], {
    input: 'PING\nhelp cl.throttle\nCL.THROTTLE typed 15 30 60\nquit\n',
    env: { ...process.env, TERM: 'dumb' }, timeout: 20_000 });
  assert(out.includes('PONG') && out.includes('summary:') && out.includes('(integer) 16') && !out.includes('(error)'), out);
}

async function pipe({ port }) {
  const all = encoded(['CL.THROTTLE', 'piped', '99999', '1', '60']).repeat(20_000);
  const { out } = await run('redis-cli', ['-p', String(port), '--pipe'], { input: all, timeout: 20_000 });
  assert(out.includes('errors: 0, replies: 20000'), out);
}

async function byHand({ port }) {
  const said = await say(port, 'CL.THROTTLE "by hand" 15 30 60\r\n\r\nPING \'it\\\'s\'\nPING "\\x41\\n"\r\n', '$2\r\nA\n\r\n');
  assert(said === '*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n$4\r\nit\'s\r\n$2\r\nA\n\r\n', JSON.stringify(said));
  for (const [bytes, error] of [
    ['PING "a\r\n', '-ERR Protocol error: unbalanced quotes in request\r\n'],
    ['*1\r\n:1\r\n', "-ERR Protocol error: expected '$', got ':'\r\n"],
    ['*1\r\n$99999999\r\n', '-ERR Protocol error: invalid bulk length: at most 65536 bytes\r\n'],
    ['*-1\r\n*0\r\n*1048577\r\n', '-ERR Protocol error: invalid multibulk length: at most 64 elements\r\n'],
  ]) {
    const answer = await say(port, bytes);
    assert(answer === error, JSON.stringify(answer));
  }
  const http = await say(port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  assert(!http.includes('unknown command'), `HTTP: ${http}`);
}

async function password(options) {
  const server = await respServer({ ...options, auth: 'required' });
  const cli = (...args) => run('redis-cli', ['-p', String(server.port), ...args]).then(({ out }) => out.trim());
  assert((await cli('CL.THROTTLE', 'x', '1', '1', '60')).startsWith('NOAUTH'), 'without a password');
  assert((await cli('-a', token, '--no-auth-warning', 'PING')) === 'PONG', 'with it');
  assert((await cli('-3', '--user', 'clients', '--pass', token, '--no-auth-warning', 'PING')) === 'PONG', 'with a name too');
  assert((await cli('-a', 'wrong', '--no-auth-warning', 'PING')).includes('WRONGPASS'), 'with another');
  await server.stop();
}

export async function redisCliCheck() {
  await eachStore(async (options) => {
    const server = await respServer(options);
    await commands(server);
    await interactive(server);
    await pipe(server);
    await byHand(server);
    assert(await server.stop() === 0, 'the server did not exit with code 0');
    await password(options);
  });
  return 'commands in RESP2 and RESP3, help on a terminal, 20,000 commands by --pipe, lines by hand, passwords; both stores';
}
