// SPDX-License-Identifier: Apache-2.0
// Runs real clients and upstreams with a real gateway, and real Redis clients with a real RESP
// frontend. Started by `./dev clients [CHECK...]`.
import { stopAll } from './harness.mjs';
import { checks } from './checks.mjs';

const wanted = process.argv.slice(2);
const names = Object.keys(checks);
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length) {
  console.error(`no check '${unknown[0]}': ${names.join(', ')}`);
  process.exit(2);
}
let passed = 0;
let failed = 0;
try {
  for (const name of wanted.length ? wanted : names) {
    const begin = Date.now();
    try {
      const said = await checks[name]();
      ++passed;
      console.log(`ok    ${name}: ${said} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
    } catch (error) {
      ++failed;
      console.log(`FAIL  ${name}: ${error.stack ?? error}`);
    }
  }
} finally {
  await stopAll();
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
