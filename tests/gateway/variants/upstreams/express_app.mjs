// SPDX-License-Identifier: Apache-2.0
// An Express server with the default settings: routes ignore case and a trailing slash, files are
// found by their decoded path. Reports in X-Served what it served, and in X-Key-* which caller's
// key it read. Usage: node express_app.mjs PORT FOLDER-OF-FILES
import cookieParser from 'cookie-parser';
import express from 'express';

const [port, files] = process.argv.slice(2);
const app = express();
app.disable('x-powered-by');

const served = (what, status = 200) => (request, response) =>
  response.status(status).set('X-Served', what).send(what);

app.use('/admin', served('admin'));
app.post('/v1/login', served('login'));

/// Returns all values of a header field in their order.
function fieldValues(request, name) {
  const values = [];
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    if (request.rawHeaders[i].toLowerCase() === name) values.push(request.rawHeaders[i + 1]);
  }
  return values;
}

/// Returns the values of a trailer the way careless applications do: trailers count as headers, and
/// `_` is the same as `-`.
function trailerValues(request, name) {
  return Object.entries(request.trailers)
    .filter(([key]) => key.toLowerCase().replaceAll('_', '-') === name)
    .map(([, value]) => value);
}

function readings(request) {
  const keys = fieldValues(request, 'x-api-key');
  const trailers = trailerValues(request, 'x-api-key');
  const query = [request.query.api_key ?? []].flat();
  const words = (request.get('authorization') ?? '').trim().split(/\s+/);
  return {
    'X-Key-Header': request.get('x-api-key'),
    'X-Key-Header-First': keys[0],
    'X-Key-Header-Last': keys.at(-1),
    'X-Key-Trailer': keys.length === 0 ? trailers[0] : undefined,
    'X-Key-Cookie': request.cookies.sid,
    'X-Key-Query-First': query[0],
    'X-Key-Query-Last': query.at(-1),
    'X-Key-Authorization': words.length === 2 && /^bearer$/i.test(words[0]) ? words[1] : undefined,
    'X-Key-Authorization-Basic':
      words.length === 2 && /^basic$/i.test(words[0]) ? words[1] : undefined,
  };
}

app.use('/keyed', cookieParser(), (request, response) => {
  request.resume();
  request.on('end', () => {
    for (const [name, value] of Object.entries(readings(request))) {
      if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) response.set(name, value);
    }
    response.set('X-Served', 'keyed').send('keyed');
  });
});

app.use(
  express.static(files, {
    setHeaders(response, path) {
      response.set('X-Served', path.includes('/admin/') ? 'admin' : 'other');
    },
  }),
);
app.use(served('none', 404));
// Express recognizes an error handler by its four parameters. It handles errors such as an invalid
// percent-encoding.
app.use((error, request, response, next) => served('none', error.status ?? 500)(request, response));

app.listen(Number(port), '127.0.0.1');
