// SPDX-License-Identifier: Apache-2.0
// Runs the programs of the documentation exactly as they are printed there.
import fs from 'node:fs';
import path from 'node:path';
import { accepting, assert, folder, freePort, run, start } from './harness.mjs';

/** Returns the first code block in `language` after a heading of a file in docs/. */
export function snippet(file, headline, language) {
  const text = fs.readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8');
  const section = text.indexOf(`\n## ${headline}\n`);
  const found = new RegExp(`\n\`\`\`${language}\n(.*?\n)\`\`\`\n`, 's').exec(text.slice(section));
  assert(section >= 0 && found, `docs/${file} has no program in ${language} below "${headline}"`);
  return found[1];
}

/** Bans a key for the duration `ttl`. */
export async function ban(admin, rule, identity, { ttl, token } = {}) {
  const answer = await fetch(`http://127.0.0.1:${admin}/v1/ban`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ rule, identity, ttl }),
  });
  assert(answer.status === 200, `ban: ${answer.status} ${await answer.text()}`);
}

let modules = 0;
/** Returns the function `allowed` of docs/resp.md. */
export async function respSnippet() {
  const file = path.join(folder, `snippet-${++modules}.mjs`);
  fs.writeFileSync(file, `${snippet('resp.md', 'TG commands', 'js')}\nexport { allowed };\n`);
  return (await import(file)).allowed;
}

/** Checks an unused key, a limited key and two banned keys of the rule `one`. `redis` has a method `call`. */
export async function checkRespSnippet(redis, { admin, token }) {
  const allowed = await respSnippet();
  const key = `${process.hrtime.bigint()}`;
  await ban(admin, 'one', `${key}-banned`, { token });
  await ban(admin, 'one', `${key}-banned-for-an-hour`, { token, ttl: '1h' });
  const show = async (identity) => JSON.stringify(await allowed(redis, 'one', `${key}-${identity}`),
    (_, value) => (value === Infinity ? 'never' : value));
  const between = (text, least, most) => {
    const { ok, retryAfterMs } = JSON.parse(text);
    return ok === false && retryAfterMs > least && retryAfterMs <= most;
  };
  const answers = {};
  for (const identity of ['free', 'free', 'banned', 'banned-for-an-hour']) {
    (answers[identity] ??= []).push(await show(identity));
  }
  const [free, limited] = answers.free;
  assert(free === '{"ok":true}', `a free key: ${free}`);
  assert(between(limited, 3_500_000, 3_600_000), `a limited key: ${limited}`);
  assert(answers.banned[0] === '{"ok":false,"retryAfterMs":"never"}', `a banned key: ${answers.banned}`);
  assert(between(answers['banned-for-an-hour'][0], 3_500_000, 3_600_000),
    `a key that is banned for an hour: ${answers['banned-for-an-hour']}`);
}

const main = `package main

import (
	"fmt"
	"os"
)

func show(name, rule, identity string) {
	ok, wait, err := allowed(rule, identity)
	switch {
	case err != nil:
		fmt.Println(name, ok, "error:", err)
	case ok:
		fmt.Println(name, "passes")
	default:
		fmt.Printf("%s refused for %.0f\\n", name, wait.Seconds())
	}
}

func main() {
 // A longer timeout than in the documentation, because the machine may be busy.
	client.Timeout *= 400
	decideURL = os.Args[1]
	for _, identity := range []string{"free", "limited", "banned", "banned-for-an-hour"} {
		show(identity, "demo", identity)
	}
	show("unknown-rule", "no-such-rule", "free")
	decideURL = os.Args[2] + "/503/{}"
	show("busy", "demo", "free")
	decideURL = os.Args[2] + "/503/{\\"allowed\\":false,\\"retry_after_ms\\":1000}"
	show("closed", "demo", "free")
	decideURL = os.Args[2] + "/502/oops"
	show("foreign", "demo", "free")
	decideURL = "http://127.0.0.1:1/v1/decide"
	show("no-server", "demo", "free")
}
`;

export async function goCheck() {
  const http = await import('node:http');
  const [api, admin] = [await freePort(), await freePort()];
  const home = fs.mkdtempSync(path.join(folder, 'go-'));
  const config = path.join(home, 'tidegate.yaml');
  fs.writeFileSync(config, `listen: { api: "127.0.0.1:${api}", admin: "127.0.0.1:${admin}" }
rules: [ { id: demo, per: header:x-api-key, limit: 1/h } ]\n`);
  const server = start(process.env.TIDEGATE ?? 'build/release/tidegate', ['serve', '--config', config]);
  await accepting(api, 'tidegate').catch((error) => { throw new Error(`${error}\n${server.output}`); });
  await ban(admin, 'demo', 'banned');
  await ban(admin, 'demo', 'banned-for-an-hour', { ttl: '1h' });
  await fetch(`http://127.0.0.1:${api}/v1/decide`, { method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: '{"rule":"demo","identity":"limited"}' });
  const other = http.createServer((request, response) => {
    const [, status, body] = /^.(\d+).(.*)$/.exec(decodeURIComponent(request.url));
    request.resume().on('end', () => response.writeHead(Number(status)).end(body));
  });
  await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));

  fs.writeFileSync(path.join(home, 'go.mod'), 'module snippet\n');
  fs.writeFileSync(path.join(home, 'main.go'), main);
  fs.writeFileSync(path.join(home, 'snippet.go'), `package main\n\n${snippet('api.md', 'From a program', 'go')}`);
  const env = { ...process.env, GOCACHE: path.join(home, 'cache'), GOPATH: path.join(home, 'path'), GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local' };
  const vet = await run('go', ['vet', '.'], { cwd: home, env });
  assert(vet.code === 0, vet.out);
  const formatted = await run('gofmt', ['-l', '.'], { cwd: home, env });
  assert(formatted.out === '', `gofmt would change ${formatted.out}`);
  const { code, out } = await run('go', ['run', '.', `http://127.0.0.1:${api}/v1/decide`,
    `http://127.0.0.1:${other.address().port}`], { cwd: home, env });
  other.closeAllConnections();
  other.close();
  server.kill('SIGTERM');
  await server.ended;
  const wanted = [/^free passes$/, /^limited refused for (3600|35\d\d)$/, /^banned refused for 9223372037$/,
    /^banned-for-an-hour refused for (3600|35\d\d)$/, /^unknown-rule false error: .*no-such-rule/, /^busy passes$/,
    /^closed refused for 1$/, /^foreign false error: 502/, /^no-server passes$/];
  const lines = out.trim().split('\n');
  assert(code === 0 && lines.length === wanted.length && lines.every((line, i) => wanted[i].test(line)), out);
  return 'the program of docs/api.md: a free, a limited and two banned keys, an unknown rule, no decision, no server';
}
