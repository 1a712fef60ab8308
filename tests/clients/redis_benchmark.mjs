// SPDX-License-Identifier: Apache-2.0
import { assert, run } from './harness.mjs';
import { eachStore, respServer } from './resp_server.mjs';

export async function redisBenchmarkCheck() {
  const rates = [];
  await eachStore(async (options, store) => {
    const { port, stop } = await respServer(options);
    const load = async (...args) => {
      const { code, out } = await run('redis-benchmark', ['-p', String(port), '-q', '-r', '10000', ...args]);
      assert(code === 0 && !/err|warn|could not/i.test(out), out);
      return Math.round(Number(/([\d.]+) requests per second/.exec(out)[1]));
    };
    const throttle = ['CL.THROTTLE', 'key:__rand_int__', '100', '1000', '1', '1'];
    rates.push(`${store}: ${await load('-P', '32', '-c', '20', '-n', '200000', ...throttle)}/s`);
    await load('-c', '50', '-n', '20000', ...throttle);
    await load('-3', '-P', '32', '-n', '20000', 'TG.DECIDE', 'per-key', 'key:__rand_int__');
    await load('-P', '16', '-n', '20000', '-t', 'ping_inline,ping_mbulk');
    assert(await stop() === 0, 'the server did not exit with code 0');
  });
  return `no error in pipelines of 32 and one by one; ${rates.join(', ')}`;
}
