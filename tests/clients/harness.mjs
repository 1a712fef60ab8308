// SPDX-License-Identifier: Apache-2.0
// Starts the programs that the checks need, on free ports of this machine, and ends all of them.
import { spawn, execFile } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

export const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'tidegate-clients-'));
const children = new Set();

export function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Resolves when a process accepts connections on the port. */
export async function accepting(port, what) {
  for (let i = 0; i < 200; ++i) {
    const open = await new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => resolve(true));
      socket.on('error', () => resolve(false)).on('connect', () => socket.destroy());
    });
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`${what} does not accept on port ${port}`);
}

export function start(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  child.output = '';
  child.stdout?.on('data', (text) => (child.output += text));
  child.stderr?.on('data', (text) => (child.output += text));
  child.ended = new Promise((resolve) => child.on('exit', (code) => resolve(code)));
  children.add(child);
  child.ended.then(() => children.delete(child));
  return child;
}

/** Runs a program to its end and returns { code, out }. `input`: text for its standard input. */
export function run(command, args, { input, ...options } = {}) {
  return new Promise((resolve) => {
    const child = execFile(command, args, { maxBuffer: 64 << 20, ...options }, (error, stdout, stderr) =>
      resolve({ code: error ? (error.code ?? -1) : 0, out: stdout + stderr }));
    if (input !== undefined) child.stdin.on('error', () => {}).end(input);
  });
}

export async function stopAll() {
  for (const child of children) child.kill('SIGTERM');
  const patience = setTimeout(() => { for (const child of children) child.kill('SIGKILL'); }, 3000);
  await Promise.all([...children].map((child) => child.ended));
  clearTimeout(patience);
  fs.rmSync(folder, { recursive: true, force: true });
}

let configs = 0;
/** Starts a tidegate with this gateway configuration (YAML, without `listen`). */
export async function tidegate(yaml, { threads = 2, port, admin, log = 'off' } = {}) {
  port ??= await freePort();
  admin ??= await freePort();
  const file = path.join(folder, `tidegate-${++configs}.yaml`);
  const write = (text) => fs.writeFileSync(file,
    `listen: { gateway: "127.0.0.1:${port}", api: off, admin: "127.0.0.1:${admin}" }\n` +
    `access_log: ${log}\n${text}`);
  write(yaml);
  const child = start(process.env.TIDEGATE ?? 'build/release/tidegate',
    ['serve', '--config', file, '--threads', String(threads)]);
  await accepting(port, 'tidegate').catch((error) => { throw new Error(`${error}\n${child.output}`); });
  return {
    child, port, admin, file, write, url: `http://127.0.0.1:${port}`,
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${child.pid}/status`, 'utf8'))[1]) * 1024,
    metric: async (name) => {
      const text = await get(admin, '/metrics');
      return text.body.split('\n').filter((line) => line.startsWith(name))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    },
  };
}

export function get(port, target, headers = {}) {
  return new Promise((resolve, reject) => {
    http.get({ port, host: '127.0.0.1', path: target, headers, agent: false }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text) => (body += text))
        .on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, body }))
        .on('error', reject);
    }).on('error', reject);
  });
}

/** Starts an nginx that serves responses of its own. */
export async function nginx(server, port) {
  port ??= await freePort();
  const home = fs.mkdtempSync(path.join(folder, 'nginx-'));
  const file = path.join(home, 'nginx.conf');
  fs.writeFileSync(file, `daemon off; worker_processes 1; pid ${home}/pid; error_log ${home}/error.log;
events { worker_connections 16384; }
http { access_log off; keepalive_requests 100000000; client_max_body_size 0;
client_body_temp_path ${home}/1; proxy_temp_path ${home}/2; fastcgi_temp_path ${home}/3; uwsgi_temp_path ${home}/4; scgi_temp_path ${home}/5;
server { listen 127.0.0.1:${port} backlog=8192; root ${home}; ${server} } }`);
  // nginx runs as one process without a master, so that killing this process stops the server.
  const child = start('/usr/sbin/nginx', ['-c', file, '-p', home, '-g', 'master_process off;']);
  await accepting(port, 'nginx');
  return { port, home, child };
}

export async function haproxy(text) {
  const file = path.join(folder, `haproxy-${++configs}.cfg`);
  fs.writeFileSync(file, text);
  return start('/usr/sbin/haproxy', ['-f', file, '-db', '-q']);
}

export function assert(holds, message) {
  if (!holds) throw new Error(message);
}
