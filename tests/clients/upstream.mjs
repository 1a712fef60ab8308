// SPDX-License-Identifier: Apache-2.0
// An upstream on Node's http module: echoes requests, streams bodies, sends events and serves
// WebSockets.
import http from 'node:http';
import { WebSocketServer } from 'ws';

export const GIGABYTES_2 = 2 * 1024 ** 3;

// The page sends its results in a request when all of them are there.
const page = `<!doctype html><title>tidegate</title><script>
const done = {};
function tell(name, value) {
  done[name] = value;
  if (Object.keys(done).length === 3) fetch('/result', { method: 'POST', body: JSON.stringify(done) });
}
fetch('/echo?x=1', { method: 'POST', body: 'from a browser', headers: { 'x-test': 'yes' } })
  .then(r => r.json().then(j => tell('fetch', j.body + ' ' + j.headers['x-test'] + ' ' + r.headers.has('ratelimit'))));
const events = []; const source = new EventSource('/events');
source.onmessage = e => { events.push(e.data); if (events.length === 3) { source.close(); tell('events', events.join(',')); } };
const socket = new WebSocket('ws://' + location.host + '/socket');
socket.onopen = () => socket.send('hello'); socket.onmessage = e => { tell('socket', e.data); socket.close(); };
</script>`;

function download(request, response) {
  response.writeHead(200, request.url.includes('chunked') ? {} : { 'content-length': GIGABYTES_2 });
  const block = Buffer.alloc(64 << 10, 'x');
  let left = GIGABYTES_2;
  const go = () => {
    while (left > 0) {
      left -= block.length;
      if (!response.write(block)) return response.once('drain', go);
    }
    response.end();
  };
  go();
}

function events(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  let n = 0;
  const timer = setInterval(() => {
    response.write(`data: ${++n}\n\n`);
    if (n === 3) clearInterval(timer);
  }, 30);
  response.on('close', () => clearInterval(timer));
}

function echo(request, response) {
  let size = 0;
  const parts = [];
  request.on('data', (data) => { size += data.length; if (size < 65536) parts.push(data); });
  request.on('end', () => response.end(JSON.stringify({
    url: request.url, method: request.method, headers: request.headers, size,
    body: Buffer.concat(parts).toString(), trailers: request.trailers })));
}

export async function nodeUpstream() {
  const server = http.createServer((request, response) => {
    if (request.url.startsWith('/download')) return download(request, response);
    if (request.url === '/events') return events(response);
    if (request.url === '/page') return response.writeHead(200, { 'content-type': 'text/html' }).end(page);
    if (request.url === '/result') {
      request.on('data', (data) => server.emit('result', JSON.parse(data)));
      return response.end();
    }
    if (request.url === '/slow') return setTimeout(() => response.end('slow\n'), 100);
    return echo(request, response);
  });
  server.keepAliveTimeout = 60_000;
  const sockets = new WebSocketServer({ server, maxPayload: 64 << 20 });
  sockets.on('connection', (socket) => {
    socket.on('message', (data, binary) => socket.send(data, { binary }));
    socket.on('close', (code) => (server.lastClose = code));
  });
  await new Promise((resolve) => server.listen({ port: 0, host: '127.0.0.1', backlog: 8192 }, resolve));
  return { port: server.address().port, server };
}
