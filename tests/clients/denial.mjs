// SPDX-License-Identifier: Apache-2.0
// Denials as a page of another origin receives them in a browser, with the configuration from the
// documentation.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { assert, folder, freePort, start, tidegate } from './harness.mjs';
import { nodeUpstream } from './upstream.mjs';

/** Returns the first YAML block after `heading` in docs/configuration.md. */
function documented(heading) {
  const text = fs.readFileSync(path.join(import.meta.dirname, '../../docs/configuration.md'), 'utf8');
  const from = text.indexOf(heading);
  assert(from >= 0, `docs/configuration.md has no "${heading}"`);
  return /```yaml\n([^]*?)```/.exec(text.slice(from))[1];
}

// The page reports the result to its own server. A PUT with a custom header field makes the browser
// send a preflight request.
const page = (gateway) => `<!doctype html><title>page</title><iframe id=f></iframe><script>
const ask = () => fetch('${gateway}/v1/x', { method: 'PUT', headers: { 'x-api-key': 'alice' }, body: 'x' });
(async () => {
  const seen = {};
  try {
    seen.first = (await ask()).status;
    const denied = await ask();
    seen.status = denied.status;
    seen.wait = denied.headers.get('retry-after');
    seen.limit = denied.headers.get('ratelimit');
    seen.body = await denied.text();
  } catch (error) { seen.error = String(error); }
  const frame = document.getElementById('f');
  frame.onload = () => fetch('/seen', { method: 'POST', body: JSON.stringify(seen) });
  frame.src = '${gateway}/html/' + "<img src=x onerror=\\"fetch('" + location.origin + "/injected')\\">";
})();
</script>`;

export async function denialCheck() {
  const upstream = await nodeUpstream();
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const cors = documented('**Pages of other origins**').replace('https://app.example.com', origin);
  assert(cors.includes(origin), 'the documented origin has changed');
  const gateway = await tidegate(`${cors}
  - { id: html, upstream: api }
upstreams: { api: { targets: "http://127.0.0.1:${upstream.port}" } }
rules:
  - id: per-key
    match: { path: /v1/** }
    per: header:x-api-key | client_ip
    limit: 1/h
    denial:
      content_type: application/json
      body: '{"error":"rate_limited","rule":"{rule}","retry_after":{retry_after},"request":"{request_id}"}'
  - id: html
    match: { path: /html/** }
    per: const
    limit: 1/h
    denial: { content_type: text/html, body: "<p title={path}>{path} {method}</p><script>var p = '{path}'</script>" }
`);
  await fetch(`${gateway.url}/html/`);  // After this request, the next one is denied.
  const requested = [];
  const server = http.createServer((request, response) => {
    requested.push(request.url);
    if (request.url !== '/seen') return response.writeHead(200, { 'content-type': 'text/html' }).end(page(gateway.url));
    let body = '';
    request.on('data', (data) => (body += data)).on('end', () => { response.end(); server.emit('seen', JSON.parse(body)); });
  }).listen(port, '127.0.0.1');
  const reported = new Promise((resolve) => server.once('seen', resolve));
  const browser = start('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    `--user-data-dir=${folder}/chromium-denial`, '--remote-debugging-port=0', `${origin}/page`]);
  const late = new Promise((_, reject) => setTimeout(
    () => reject(new Error(`the page reported nothing: ${browser.output.slice(-2000)}`)), 30_000).unref());
  const seen = await Promise.race([reported, late]).finally(() => browser.kill('SIGTERM'));
  await browser.ended;
  server.close();
  assert(seen.error === undefined, `the page could not read the denial: ${JSON.stringify(seen)}`);
  // Preflight requests are not counted: the limit is one request.
  assert(seen.first === 200 && seen.status === 429, JSON.stringify(seen));
  assert(seen.wait === '3600', JSON.stringify(seen));
  assert(/^"per-key";r=0/.test(seen.limit), JSON.stringify(seen));
  const body = JSON.parse(seen.body);
  assert(body.error === 'rate_limited' && body.rule === 'per-key' && body.retry_after === 3600 && body.request.length === 32, seen.body);
  assert(!requested.includes('/injected'), 'a path in an HTML denial ran as a script');
  return `a page of another origin read status, Retry-After and body of a denial: ${seen.body.trim()}`;
}
