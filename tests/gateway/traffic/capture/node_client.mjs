// SPDX-License-Identifier: Apache-2.0
// Usage: node node_client.mjs BASE fetch|http TARGETS-AS-JSON
import http from 'node:http';

const [base, part, json] = process.argv.slice(2);
const targets = JSON.parse(json);

async function withFetch() {
  for (const [name, rest] of Object.entries(targets)) await (await fetch(`${base}/${name}${rest}`)).text();
  const send = async (name, options) => (await fetch(`${base}/${name}`, options)).text();
  await send('form', { method: 'POST', body: new URLSearchParams({ a: 'b c', d: 'ü&' }) });
  const form = new FormData();
  form.set('k', 'ü');
  form.set('f', new Blob(['a\r\n--b']), 'näme.txt');
  await send('multipart', { method: 'POST', body: form });
  await send('api-json', { method: 'PUT', body: '{"a":1}', headers: { 'content-type': 'application/json' } });
  const stream = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('one'));
      controller.enqueue(new TextEncoder().encode('two'));
      controller.close();
    },
  });
  await send('stream', { method: 'POST', body: stream, duplex: 'half' });
  await send('delete', { method: 'DELETE' });
  await send('lower-case-method', { method: 'patch', body: 'x' });
  await send('head', { method: 'HEAD' });
}

function request(path, options = {}, write = () => {}) {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(base);
    const sent = http.request({ hostname, port, path, ...options }, (response) => {
      response.resume();
      response.on('end', resolve);
    });
    sent.on('error', reject);
    sent.on('upgrade', resolve);
    write(sent);
    sent.end();
  });
}

async function withHttp() {
  for (const [name, rest] of Object.entries(targets)) {
    // Sent without encoding, because Node.js allows all of these characters in a target.
    if (/^[\x21-\x7e]*$/.test(rest)) await request(`/${name}${rest}`);
  }
  await request('/chunked', { method: 'POST' }, (sent) => {
    sent.write('one');
    sent.write('two');
  });
  await request(
    '/trailers',
    { method: 'POST', headers: { Trailer: 'X-Checksum', 'Transfer-Encoding': 'chunked' } },
    (sent) => {
      sent.write('body');
      sent.addTrailers({ 'X-Checksum': 'abc', 'Server-Timing': 'a;dur=1' });
    },
  );
  await request('/expect', { method: 'POST', headers: { Expect: '100-continue', 'Content-Length': 4 } },
    (sent) => sent.write('body'));
  await request('/latin1-header', { headers: { 'X-Name': 'caf\xe9' } });
  await request('/repeated-headers', { headers: { 'X-A': ['1', '2'], Cookie: ['a=b', 'c=d'] } });
  await request('/options', { method: 'OPTIONS' });
  await request('/report', { method: 'M-SEARCH' });
  await request('/no-host-port', { headers: { Host: 'app.test' }, setHost: false });
  await request('/upgrade', {
    headers: {
      Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    },
  });
}

await (part === 'fetch' ? withFetch() : withHttp());
process.exit(0);
