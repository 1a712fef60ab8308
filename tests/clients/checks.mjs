// SPDX-License-Identifier: Apache-2.0
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import WebSocket from 'ws';
import { accepting, assert, folder, freePort, get, haproxy, nginx, run, start, tidegate } from './harness.mjs';
import { denialCheck } from './denial.mjs';
import { ioredisCheck } from './ioredis.mjs';
import { nodeRedisCheck } from './node_redis.mjs';
import { redisBenchmarkCheck } from './redis_benchmark.mjs';
import { redisCliCheck } from './redis_cli.mjs';
import { goCheck } from './snippets.mjs';
import { GIGABYTES_2, nodeUpstream } from './upstream.mjs';

const rules = 'rules: [ { id: everybody, per: client_ip, limit: 100000000/s } ]\n';
const one = (port, more = '') => `${rules}routes: [ { match: { path: /** }, upstream: u } ]
upstreams: { u: { targets: [ "http://127.0.0.1:${port}" ]${more} } }\n`;

/** Returns the numbers that wrk reports: { requests, failed, text }. */
function wrkReport(out) {
  const requests = Number(/(\d+) requests in/.exec(out)?.[1] ?? 0);
  const non2xx = Number(/Non-2xx or 3xx responses: (\d+)/.exec(out)?.[1] ?? 0);
  const sockets = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(out);
  const errors = sockets ? sockets.slice(1).reduce((sum, n) => sum + Number(n), 0) : 0;
  assert(requests > 0, `wrk sent no requests:\n${out}`);
  return { requests, failed: non2xx + errors, text: out };
}
const wrk = (url, seconds, connections = 32, more = []) =>
  run('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, ...more, url]).then(({ out }) => wrkReport(out));

async function curlCheck() {
  const upstream = await nodeUpstream();
  const gateway = await tidegate(one(upstream.port));
  const curl = (...args) => run('curl', ['-sS', '--max-time', '20', ...args]);
  const echo = JSON.parse((await curl('-H', 'X-A: b', '-d', 'body', `${gateway.url}/a/../b?q=1`, '--path-as-is')).out);
  assert(echo.body === 'body' && echo.url === '/b?q=1' && echo.headers['x-a'] === 'b', JSON.stringify(echo));
  const head = await curl('-I', `${gateway.url}/`);
  assert(/^HTTP\/1.1 200/.test(head.out) && /ratelimit:/i.test(head.out), head.out);
  fs.writeFileSync(path.join(folder, 'body'), Buffer.alloc(3 << 20, 'z'));
  const expect = JSON.parse((await curl('-H', 'Expect: 100-continue', '-T', path.join(folder, 'body'), `${gateway.url}/put`)).out);
  assert(expect.size === 3 << 20, `Expect: ${expect.size}`);
  const chunked = JSON.parse((await curl('-H', 'Transfer-Encoding: chunked', '-T', path.join(folder, 'body'), `${gateway.url}/put`)).out);
  assert(chunked.size === 3 << 20 && chunked.headers['transfer-encoding'] === 'chunked', 'chunked');
  const old = await curl('--http1.0', `${gateway.url}/old`);
  assert(JSON.parse(old.out).url === '/old', old.out);
  const events = await run('curl', ['-sSN', '--max-time', '1', `${gateway.url}/events`]);
  assert(events.out.includes('data: 3'), events.out);
  return 'GET, POST, HEAD, PUT with Expect and chunked, HTTP/1.0, server-sent events';
}

async function wrkCheck() {
  const upstream = await nginx('location / { return 200 "hello\\n"; }');
  const gateway = await tidegate(one(upstream.port));
  const report = await wrk(`${gateway.url}/`, 5, 64);
  assert(report.failed === 0, report.text);
  return `${report.requests} requests to nginx, none failed`;
}

async function socketCheck() {
  const upstream = await nodeUpstream();
  const gateway = await tidegate(`rules: [ { id: sockets, per: client_ip, limit: 2/1s, algorithm: concurrency } ]
routes: [ { match: { path: /** }, upstream: u } ]
upstreams: { u: { targets: [ "http://127.0.0.1:${upstream.port}" ] } }\n`);
  const open = () => new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${gateway.port}/socket`, { maxPayload: 64 << 20 });
    socket.on('open', () => resolve(socket)).on('error', reject);
  });
  const ask = (socket, data) => new Promise((resolve) => {
    socket.once('message', (answer) => resolve(answer));
    socket.send(data);
  });
  const [first, second] = [await open(), await open()];
  assert((await ask(first, 'hello')).toString() === 'hello', 'a text');
  const large = Buffer.alloc(20 << 20, 7);
  assert((await ask(second, large)).equals(large), '20 MiB');
  const refused = await open().then(() => 'opened', (error) => error.message);
  assert(refused.includes('429'), `a third: ${refused}`);
  // Longer than the period of a lease: the gateway renews the leases.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  assert((await open().then(() => 'opened', (error) => error.message)).includes('429'), 'after two and a half leases');
  const closed = new Promise((resolve) => first.on('close', resolve));
  first.close(4001, 'bye');
  assert(await closed === 4001, 'the close code of the client was not returned');
  second.terminate();  // Closes the connection without a close frame.
  for (let i = 0; ; ++i) {
    const socket = await open().catch(() => null);
    if (socket) { socket.close(); break; }
    assert(i < 40, 'the leases were not released');
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return 'text, 20 MiB, close codes; leases held, renewed and given back';
}

async function browserCheck() {
  const upstream = await nodeUpstream();
  const gateway = await tidegate(one(upstream.port));
  const saw = new Promise((resolve) => upstream.server.once('result', resolve));
  const browser = start('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
    `--user-data-dir=${folder}/chromium`, '--remote-debugging-port=0', `${gateway.url}/page`]);
  const late = new Promise((_, reject) => setTimeout(
    () => reject(new Error(`the browser reported nothing: ${browser.output.slice(-2000)}`)), 30_000).unref());
  const result = await Promise.race([saw, late]).finally(() => browser.kill('SIGTERM'));
  await browser.ended;
  assert(result.fetch === 'from a browser yes true', JSON.stringify(result));
  assert(result.events === '1,2,3' && result.socket === 'hello', JSON.stringify(result));
  return 'a page with fetch, EventSource and WebSocket in Chromium';
}

async function bulkCheck() {
  const upstream = await nodeUpstream();
  const gateway = await tidegate(one(upstream.port, ', idle_timeout: 5m'));
  const file = path.join(folder, 'large');
  fs.writeFileSync(file, '');
  fs.truncateSync(file, GIGABYTES_2);
  await get(gateway.port, '/warm');
  const before = gateway.memory();
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, gateway.memory())), 20);
  for (const target of ['/download', '/download-chunked']) {
    const { out } = await run('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code} %{size_download}', `${gateway.url}${target}`]);
    assert(out === `200 ${GIGABYTES_2}`, `${target}: ${out}`);
  }
  for (const header of ['X-Plain: yes', 'Transfer-Encoding: chunked']) {
    const { out } = await run('curl', ['-sS', '-H', header, '-T', file, `${gateway.url}/upload`]);
    assert(JSON.parse(out).size === GIGABYTES_2, `upload with ${header}: ${out.slice(0, 300)}`);
  }
  clearInterval(watch);
  assert(most - before < 4 << 20, `memory grew by ${most - before} bytes`);
  return `2 GiB down and up, with a length and chunked; memory grew by ${((most - before) / 1024).toFixed(0)} KiB`;
}

async function connectionsCheck() {
  const upstream = await nodeUpstream();
  const gateway = await tidegate(one(upstream.port));
  const before = gateway.memory();
  const count = 5000;
  const sockets = await Promise.all(Array.from({ length: count }, () => new Promise((resolve, reject) => {
    const socket = net.connect(gateway.port, '127.0.0.1', () => resolve(socket));
    socket.on('error', reject);
    socket.text = '';
    socket.on('data', (data) => (socket.text += data));
  })));
  // All requests are sent at once, and the upstream holds each for 100 ms.
  const answered = sockets.map((socket) => new Promise((resolve) => {
    socket.on('data', () => { if (socket.text.endsWith('slow\n')) resolve(); });
  }));
  for (const socket of sockets) socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  const most = await Promise.race([Promise.all(answered).then(() => gateway.memory()),
    new Promise((_, reject) => setTimeout(() => reject(new Error('not all were answered')), 60_000).unref())]);
  assert(sockets.every((socket) => socket.text.startsWith('HTTP/1.1 200')), 'not all responses are 200');
  assert(await gateway.metric('tidegate_connections{listener="gateway"}') === count, 'not all connections are open');
  for (const socket of sockets) socket.destroy();
  return `${count} connections with a request each at once, ${((most - before) / count / 1024).toFixed(1)} KiB each`;
}

/** Kills an upstream, suspends it and starts it again, while clients send requests. */
async function upstreamCheck() {
  const answer = 'location / { return 200 "hello\\n"; }';
  const targets = [await nginx(answer), await nginx(answer)];
  const gateway = await tidegate(`${rules}routes:
  - { match: { path: /one }, upstream: one }
  - { upstream: two }
upstreams:
  one: { targets: "http://127.0.0.1:${targets[0].port}", response_timeout: 300ms, retries: off }
  two: { targets: [ "http://127.0.0.1:${targets[0].port}", "http://127.0.0.1:${targets[1].port}" ], response_timeout: 300ms, ejection: { failures: 3, time: 500ms }, retries: { attempts: 2, percent: 100, timeout: true } }\n`);
  const statusOfOne = async () => (await get(gateway.port, '/one')).status;
  const eventually = async (wanted) => {
    for (let i = 0; i < 200; ++i) {
      if (await statusOfOne() === wanted) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`no ${wanted}, but ${await statusOfOne()}`);
  };
  const load = wrk(`${gateway.url}/`, 6, 32);
  await eventually(200);
  targets[0].child.kill('SIGKILL');
  await targets[0].child.ended;
  await eventually(502);
  targets[0] = await nginx(answer, targets[0].port);
  await eventually(200);
  for (let i = 0; i < 3; ++i) {
    targets[0].child.kill('SIGKILL');
    await targets[0].child.ended;
    targets[0] = await nginx(answer, targets[0].port);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await eventually(200);
  const report = await load;
  assert(report.failed === 0, report.text);
  targets[0].child.kill('SIGSTOP');
  await eventually(504);
  targets[0].child.kill('SIGCONT');
  await eventually(200);
  const retries = await gateway.metric('tidegate_upstream_retries_total{upstream="two"}');
  const ejections = await gateway.metric('tidegate_upstream_ejections_total{upstream="two"}');
  return `502 when killed, 504 when stopped, 200 afterwards; ${report.requests} requests with a second target while the first was killed four times: none failed, ${retries} retries, ${ejections} ejections`;
}

async function reloadCheck() {
  const upstream = await nginx('location / { return 200 "hello\\n"; }');
  const other = await nginx('location / { return 200 "other\\n"; }');
  const gateway = await tidegate(one(upstream.port));
  const load = wrk(`${gateway.url}/`, 6, 64);
  let reloads = 0;
  const timer = setInterval(() => {
    gateway.write(one(++reloads % 2 ? other.port : upstream.port, reloads % 3 ? '' : ', balance: least_requests'));
    gateway.child.kill('SIGHUP');
  }, 100);
  const report = await load;
  clearInterval(timer);
  assert(report.failed === 0, report.text);
  const applied = await gateway.metric('tidegate_config_reloads_total');
  assert(applied >= reloads / 2, `${applied} of ${reloads} reloads`);
  return `${report.requests} requests, ${reloads} reloads that change the upstream, none failed`;
}

/** Replaces two gateways, one after the other, behind a balancer that checks /readyz. */
async function drainCheck() {
  const upstream = await nginx('location / { return 200 "hello\\n"; }');
  const yaml = `limits: { drain_delay: 1s, drain_timeout: 5s }\n${one(upstream.port)}`;
  const gateways = [await tidegate(yaml, { threads: 1 }), await tidegate(yaml, { threads: 1 })];
  const port = await freePort();
  await haproxy(`defaults
  mode http
  timeout connect 1s
  timeout client 30s
  timeout server 30s
frontend f
  bind 127.0.0.1:${port}
  default_backend b
backend b
  balance roundrobin
  option httpchk GET /readyz
  http-check expect status 200
` + gateways.map((g, i) => `  server s${i} 127.0.0.1:${g.port} check port ${g.admin} inter 100ms fall 1 rise 1\n`).join(''));
  await accepting(port, 'haproxy');
  const load = wrk(`http://127.0.0.1:${port}/`, 9, 32);
  const replaced = [];
  for (const old of gateways) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    old.child.kill('SIGTERM');
    replaced.push(await old.child.ended);
    await tidegate(yaml, { threads: 1, port: old.port, admin: old.admin });
  }
  const report = await load;
  assert(report.failed === 0, report.text);
  assert(replaced.every((code) => code === 0), `exit codes ${replaced}`);
  return `${report.requests} requests while both gateways were replaced, none failed`;
}

export const checks = {
  curl: curlCheck,
  wrk: wrkCheck,
  ws: socketCheck,
  browser: browserCheck,
  denial: denialCheck,
  bulk: bulkCheck,
  connections: connectionsCheck,
  upstream: upstreamCheck,
  reload: reloadCheck,
  drain: drainCheck,
  'redis-cli': redisCliCheck,
  'redis-benchmark': redisBenchmarkCheck,
  ioredis: ioredisCheck,
  'node-redis': nodeRedisCheck,
  go: goCheck,
};
