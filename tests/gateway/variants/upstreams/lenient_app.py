# SPDX-License-Identifier: Apache-2.0
"""A WSGI server from Python's standard library that reads each request in several ways.

Each way is one that real servers and frameworks have. The response reports what each of them would
have served (X-Served-*) and which caller each of them would have identified (X-Key-*).

Usage: lenient_app.py PORT
"""

import re
import socketserver
import sys
import urllib.parse
from http.cookies import CookieError, SimpleCookie
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server


def served(method, path):
    if path == "/admin" or path.startswith("/admin/"):
        return "admin"
    if path == "/v1/login":
        return "login" if method == "POST" else "other"
    return "other" if path in ("/free", "/x") else "none"


def as_text(path):
    """Decodes PATH_INFO, which is Latin-1 by definition, as UTF-8 if it is valid UTF-8, like frameworks."""
    raw = path.encode("latin-1")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return path


def lenient(path):
    """Removes every ending that some framework removes, until none is left."""
    before = None
    while before != path:
        before = path
        path = path.split("\0", 1)[0]
        head, _, last = path.rpartition("/")
        path = head + "/" + last.split(";", 1)[0].rstrip().rstrip(".")
        if len(path) > 1:
            path = path.rstrip("/")
    return path


def resolved(path):
    """Returns the path without dot segments and empty segments."""
    segments = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    return "/" + "/".join(segments)


def servlet(raw_path):
    """Removes the parameters of every segment, then decodes the path, then resolves dot segments."""
    path = "/".join(segment.split(";", 1)[0] for segment in raw_path.split("/"))
    return resolved(urllib.parse.unquote(path, "latin-1"))


def windows(path):
    """Treats a backslash as a slash."""
    return resolved(path.replace("\\", "/"))


def rewritten(environ, path):
    """Returns the path of a header in the place of the request's own, as some frameworks do for IIS."""
    for name in ("HTTP_X_ORIGINAL_URL", "HTTP_X_REWRITE_URL"):
        if environ.get(name):
            return urllib.parse.urlsplit(environ[name].split(",")[0].strip()).path
    return path


def last_cookie(header):
    try:
        return SimpleCookie(header)["sid"].value
    except (CookieError, KeyError):
        return ""


def first_cookie(header):
    """Parses cookies like frameworks that split the header at semicolons."""
    for pair in as_text(header).split(";"):
        name, _, value = (part.strip() for part in pair.partition("="))
        if name == "sid":
            return value[1:-1] if re.fullmatch('".*"', value) else value
    return ""


def identities(environ):
    header = environ.get("HTTP_X_API_KEY", "")
    lines = environ["API_KEY_LINES"] or [""]
    query = urllib.parse.parse_qs(environ.get("QUERY_STRING", "")).get("api_key", [""])
    words = environ.get("HTTP_AUTHORIZATION", "").split()
    scheme = words[0].lower() if len(words) == 2 else ""
    return {
        "X-Key-Header": header,
        "X-Key-Header-First": lines[0],
        "X-Key-Header-Last": lines[-1],
        "X-Key-Cookie-First": first_cookie(environ.get("HTTP_COOKIE", "")),
        "X-Key-Cookie-Last": last_cookie(environ.get("HTTP_COOKIE", "")),
        "X-Key-Query-First": query[0],
        "X-Key-Query-Last": query[-1],
        "X-Key-Authorization": words[1] if scheme == "bearer" else "",
        "X-Key-Authorization-Basic": words[1] if scheme == "basic" else "",
    }


def app(environ, start_response):
    method = environ["REQUEST_METHOD"]
    path = environ["PATH_INFO"]
    text = as_text(path)
    headers = {
        "X-Served-Exact": served(method, path),
        "X-Served-Lenient": served(method.upper(), lenient(text)),
        "X-Served-Servlet": served(method, servlet(environ["RAW_PATH"])),
        "X-Served-Windows": served(method, windows(text)),
        "X-Served-Rewriting": served(method, rewritten(environ, path)),
    }
    for name, value in identities(environ).items():
        if re.fullmatch("[\x21-\x7e]+", value):
            headers[name] = value
    # The fields are repeated in the body, because a client that sends no HTTP version gets no
    # header fields.
    body = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("latin-1")
    headers["Content-Length"] = str(len(body))
    start_response("200 OK", list(headers.items()))
    return [b"" if method.upper() == "HEAD" else body]


class Handler(WSGIRequestHandler):
    def get_environ(self):
        environ = super().get_environ()
        environ["RAW_PATH"] = self.path.split("?", 1)[0]
        # The WSGI environment writes `-` in field names as `_`, so both spellings name the same
        # field.
        environ["API_KEY_LINES"] = [
            value.strip()
            for name, value in self.headers.items()
            if name.lower().replace("_", "-") == "x-api-key"
        ]
        return environ

    def address_string(self):
        return self.client_address[0]

    def log_message(self, format, *args):
        pass


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 512

    def server_bind(self):
        # Unlike HTTPServer.server_bind(), this does not look up the machine's name in DNS.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]
        self.setup_environ()


make_server("127.0.0.1", int(sys.argv[1]), app, Server, Handler).serve_forever()
