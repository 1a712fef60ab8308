#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the requests of real clients as the fixture of gateway_traffic_test.

Usage: capture.py OUTPUT

Starts a server on a free loopback port that keeps every byte, lets Chromium, Node.js, curl, Python
and Go send requests to it, and writes them to OUTPUT, one record each. Needs chromium, node, curl,
go and Python's `requests` (Debian: chromium nodejs curl golang-go python3-requests). The test itself
needs none of them.

The first segment of each target is the name of the record.
"""

import gzip
import http.client
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request

import requests

HERE = pathlib.Path(__file__).parent
# The fixture has this port in the place of the recorder's own, which has as many digits.
STORED_PORT = "18080"

# Text that follows the name of the record in a target. Clients encode some of these characters,
# each client in its own way.
TARGETS = {
    "marks-in-query": "/?a=|{}^[]`\"<>\\'",
    "json-in-query": '/?filter={"a":[1,{"b":"c|d"}],"e":null}',
    "marks-in-path": "/a|b/[c]/d^e",
    "braces-in-path": "/{id}/`x`",
    "utf8-in-path": "/caf\u00e9/\u65e5\u672c\u8a9e/\U0001f600",
    "utf8-in-query": "/?q=\u00fc\u00df&\u540d=\u524d",
    "encoded-utf8": "/caf%C3%A9/%e6%97%a5?q=%F0%9F%98%80",
    "encoded-marks": "/%7C%5B%5D%5E%7B%7D%22%3C%3E%60?q=%7C%5B%5D%22%5C",
    "encoded-space": "/a%20b%20c?q=a%20b+c",
    "encoded-percent": "/100%25/50%25off?q=100%25",
    "broken-percent-in-query": "/?q=100%&r=%zz&s=%4",
    "empty-query": "/?",
    "question-in-query": "/?a=b?c=d??",
    "path-in-query": "/?next=/a/../b//c&url=http://x.test:80/a?b",
    "encoded-slash-in-query": "/?next=%2Fa%2F..%2Fb&back=%5C",
    "double-slash": "//a///b",
    "at-and-colon": "/@user/user:pw@host/a:b/urn:x:1",
    "sub-delimiters": "/it's(1)*~+$,=!&/-._~",
    "matrix": "/map;v=1.0/tile;x=3;y=4,5/end;q",
    "semicolon-in-query": "/?a=1;b=2;c",
    "dots-in-path": "/a.b..c/...d/.well-known/v1.2.",
    "dot-segments": "/a/./b/../c",
    "encoded-unreserved": "/%61%2D%7E?%61=%62",
    "plus": "/a+b?q=c+d%2B",
    "long-path": "/" + "abcdefghi/" * 150,
    "long-query": "/?q=" + "x" * 6000,
    "many-parameters": "/?" + "&".join(f"p{i}={i}" for i in range(120)),
    "array-parameters": "/?ids[]=1&ids[]=2&a[b][c]=d",
    "base64-in-query": "/?t=YWJj+/==&u=a-b_c",
    "jwt-in-path": "/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "email": "/users/o'neil+tag@example.com?to=a@b.c",
    "ipv6-in-query": "/?host=[::1]:80",
    "encoded-controls-in-query": "/?a=%0A%0D%09%00b",
    "latin1-in-query": "/?q=%e9%E8",
    "asterisk": "/*/a*b",
    "trailing-space": "/report%20?x",
    "file-names": "/My%20Report%20(final)%20%5B2%5D.pdf",
    "encoded-question": "/what%3F/a%23b",
    "encoded-colon": "/a%3Ab%40c%2Cd%3De",
}
# Targets that only clients without normalization send.
RAW_TARGETS = {
    "encoded-slash": "/group%2Fproject/a%2fb",
    "encoded-backslash": "/a%5Cb",
    "backslash-in-path": "/a\\b",
    "encoded-semicolon": "/a%3Bb",
    "raw-utf8-in-path": "/caf\u00e9/\u65e5\u672c\u8a9e",
    "raw-utf8-in-query": "/?q=\u00fc\u00df",
}
# Records that two servers could take for different requests, and why.
AMBIGUOUS = {
    "encoded-slash": "an encoded slash divides segments for some servers and not for others",
    "encoded-backslash": "a backslash is a slash to some servers",
    "backslash-in-path": "a backslash is a slash to some servers",
    "utf8-host": "a host that is not ASCII has more than one spelling",
    "raw-path": "an encoded slash divides segments for some servers and not for others",
}
# Records that Tidegate forwards only with an option that is off by default.
NEEDS = {
    "unknown-expect": "unknown_expect",
    "target-of-30000": "target_bytes",
}


class Recorder:
    """A server that records whole requests, in order of arrival."""

    def __init__(self):
        self.requests = []
        self.page = b""
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        assert len(str(self.port)) == len(STORED_PORT)
        self.base = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def take(self):
        taken, self.requests = self.requests, []
        return taken

    def _accept(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        buffer = b""
        while True:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                more = connection.recv(65536)
                if not more:
                    return
                buffer += more
                continue
            head = buffer[: end + 4]
            if re.search(rb"(?i)\nexpect: *100-continue", head):
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            size = self._size(connection, buffer, end + 4)
            if size is None:
                return
            buffer, size = size
            self.requests.append(buffer[:size])
            self._answer(connection, head)
            buffer = buffer[size:]

    def _size(self, connection, buffer, body):
        """Receives the rest of the first request.

        Returns all bytes so far and the size of that request; None if the connection ends first.
        """
        head = buffer[:body]
        length = re.search(rb"(?i)\ncontent-length: *(\d+)", head)
        chunked = re.search(rb"(?i)\ntransfer-encoding: *chunked", head)
        while True:
            if chunked:
                done = re.search(rb"(?:^|\r\n)0\r\n(?:[^\r\n]+\r\n)*\r\n", buffer[body:])
                if done:
                    return buffer, body + done.end()
            else:
                size = body + (int(length[1]) if length else 0)
                if len(buffer) >= size:
                    return buffer, size
            more = connection.recv(65536)
            if not more:
                return None
            buffer += more

    def _answer(self, connection, head):
        cors = (
            b"Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: x-custom, content-type\r\n"
            b"Access-Control-Allow-Methods: PUT, PATCH, DELETE\r\nCache-Control: max-age=0\r\n"
            b'ETag: "v1"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n'
        )
        body = self.page if head.startswith(b"GET /page") else b"ok"
        kind = b"text/html" if head.startswith(b"GET /page") else b"text/plain"
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n" + cors
        answer += b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n"
        if b"Upgrade: websocket" in head:
            answer, body = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b""
        connection.sendall(answer + (b"" if head.startswith(b"HEAD") else body))


class Fixture:
    def __init__(self, recorder):
        self.recorder = recorder
        self.records = []
        self.seen = set()

    def store(self, client):
        """Adds the requests since the last call whose targets begin with the name of a record."""
        for raw in self.recorder.take():
            line = raw.split(b"\r\n", 1)[0].decode("utf-8", "replace")
            named = re.match(r"([A-Z]+) (?:http://[^/]+)?/+([a-z0-9-]+)", line)
            if not named or named[2] in ("page", "favicon", "json"):
                continue
            self.add(client, named[2], raw, named[1])

    def add(self, client, name, raw, method="", until=""):
        title = f"{client}: {name}" + ("" if method in ("", "GET") else f" {method}")
        # A target that another client has sent in the same form adds no information.
        line = raw.split(b"\r\n", 1)[0]
        shared = name in {**TARGETS, **RAW_TARGETS} and "address bar" not in client
        if title in self.seen or (shared and line in self.seen):
            return
        self.seen |= {title, line}
        raw = raw.replace(str(self.recorder.port).encode(), STORED_PORT.encode())
        lines = [f"== {title}"]
        odd = re.search(rb"(?i)%2f|%5c|\\", line.split(b"?")[0]) or name.endswith("-host")
        if AMBIGUOUS.get(name) and odd:
            lines.append(f"ambiguous: {AMBIGUOUS[name]}")
        if NEEDS.get(name):
            lines.append(f"needs: {NEEDS[name]}")
        if until:
            lines.append(f"until: {until}")
        lines += [f"> {escaped(line)}" for line in re.findall(rb"[^\n]*\n|[^\n]+", raw)]
        self.records.append("\n".join(lines))

    def write(self, path):
        head = (HERE / "fixture_head.txt").read_text()
        path.write_text(head + "\n" + "\n\n".join(self.records) + "\n")


def escaped(line):
    """Returns text as printable ASCII; 40 or more equal characters in a row become `\\{x*40}`."""
    text = ""
    for run in re.finditer(rb"(.)\1{39,}|.", line, re.DOTALL):
        byte = run[0][:1]
        one = {b"\\": "\\\\", b"\r": "\\r", b"\n": "\\n", b"\t": "\\t"}.get(byte)
        if one is None:
            one = byte.decode() if b" " <= byte <= b"~" else f"\\x{byte[0]:02x}"
        text += one if len(run[0]) == 1 else f"\\{{{one}*{len(run[0])}}}"
    return text


def version(*command):
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.search(r"\d+\.\d+(\.\d+)?", said)[0]


def run_curl(recorder, fixture):
    client = "curl " + version("curl", "--version")
    base = recorder.base

    def curl(*arguments):
        subprocess.run(
            ["curl", "-s", "-o", "/dev/null", "--globoff", "--path-as-is", "--max-time", "10",
             *arguments], check=False)
        fixture.store(client)

    for name, rest in {**TARGETS, **RAW_TARGETS}.items():
        if " " not in rest:
            curl(f"{base}/{name}{rest}")
    curl("--head", f"{base}/head")
    curl("-0", f"{base}/http10")
    curl("-0", "-d", "a=b", f"{base}/http10-post")
    curl("-x", base, "http://app.test/absolute-form/a?b=c")
    curl("-x", base, "http://app.test:8080/absolute-form-port/")
    curl("-x", base, "-d", "a=b", "http://app.test/absolute-form-post")
    curl("-d", "a=b&c=d%20e+f&g=%C3%BC", f"{base}/form")
    curl("-d", "x" * 2_000, "-H", "Expect: 100-continue", f"{base}/expect-continue")
    curl("-d", "a=b", "-H", "Expect: 200-ok", f"{base}/unknown-expect")
    curl("-F", "a=b", "-F", "file=@-;filename=a \"b\".txt", f"{base}/multipart-curl")
    curl("-H", "Transfer-Encoding: chunked", "-d", "chunked body", f"{base}/chunked")
    curl("-T", binary_file(), f"{base}/upload")
    curl("-X", "DELETE", f"{base}/delete")
    curl("-X", "PATCH", "-d", "{}", "-H", "Content-Type: application/json", f"{base}/patch")
    curl("-X", "PURGE", f"{base}/purge")
    curl("-X", "REPORT", "-d", "<x/>", f"{base}/report")
    curl("-X", "MKCOL", f"{base}/mkcol")
    curl("-X", "OPTIONS", f"{base}/options")
    curl("-X", "POST", f"{base}/post-without-body")
    curl("-d", "", f"{base}/post-empty")
    curl("-X", "GET", "-d", '{"q":1}', f"{base}/get-with-body")
    curl("-r", "0-99", f"{base}/range")
    curl("-r", "0-1,5-9,-3", f"{base}/ranges")
    curl("-C", "100", f"{base}/resume")
    curl("-z", "2026-01-01", f"{base}/since")
    curl("-H", 'If-None-Match: "v1", W/"v2"', f"{base}/none-match")
    curl("--compressed", f"{base}/compressed")
    curl("-u", "user:p:w", f"{base}/basic")
    curl("-A", "", f"{base}/no-agent")
    curl("-H", "Accept:", f"{base}/no-accept")
    curl("-H", "X-Empty;", f"{base}/empty-header")
    curl("-H", "X-Name: caf\u00e9 \u65e5\u672c", f"{base}/utf8-header")
    curl("-H", "x_under_score: 1", "-H", "X-Dotted.Name: 2", "-H", "X!#$%&'*+^`|~: 3",
         f"{base}/header-names")
    curl("-H", "X-Quoted: a \"b\" (c) {d} [e] <f> \\g; h=i, j", f"{base}/header-marks")
    curl("-H", "X-Tab: a\tb", f"{base}/header-tab")
    curl("-H", "X-Long: " + "y" * 7_000, f"{base}/long-header")
    curl(*[part for i in range(80) for part in ("-H", f"X-H{i}: {i}")], f"{base}/many-headers")
    curl("-b", "; ".join(f"c{i}=v{i}" for i in range(60)), f"{base}/many-cookies")
    curl("-b", 'a="q u o"; b={"x":1}; c=%7B; d=; e; f=g=h', f"{base}/odd-cookies")
    curl("-H", "Host: B\u00fccher.test".encode().decode(), f"{base}/utf8-host")
    curl("-H", "Host: xn--bcher-kva.test", f"{base}/punycode-host")
    curl("-H", "Host: UPPER.Test.", f"{base}/upper-host")
    curl("-H", "Host: under_score.test", f"{base}/underscore-host")
    curl("-H", "Host: [::1]:8080", f"{base}/ipv6-host")
    curl("-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13",
         "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", f"{base}/websocket")
    curl("--http2", f"{base}/h2c-upgrade")
    curl("-H", "TE: trailers", f"{base}/te-trailers")
    curl("-H", "Content-Type: application/x-protobuf", "--data-binary", "@" + binary_file(),
         f"{base}/protobuf")
    curl("-H", "Content-Type: application/json", "-d",
         '{"query":"query($a:Int!){x(a:$a){y}}","variables":{"a":1}}', f"{base}/graphql")
    curl("-H", "Content-Encoding: gzip", "--data-binary", "@" + gzip_file(), f"{base}/gzip-body")
    curl(f"{base}/target-of-30000/?q=" + "z" * 30_000)


def binary_file():
    path = pathlib.Path(tempfile.mkdtemp()) / "message.bin"
    path.write_bytes(bytes(range(256)) + b"\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n")
    return str(path)


def gzip_file():
    path = pathlib.Path(tempfile.mkdtemp()) / "message.gz"
    path.write_bytes(gzip.compress(b"hello " * 20, mtime=0))
    return str(path)


def run_python(recorder, fixture):
    base = recorder.base
    client = f"Python requests {requests.__version__}"
    session = requests.Session()
    for name in ("marks-in-query", "marks-in-path", "braces-in-path", "utf8-in-path",
                 "utf8-in-query", "broken-percent-in-query", "double-slash", "sub-delimiters",
                 "matrix", "encoded-percent", "array-parameters", "dot-segments"):
        session.get(f"{base}/{name}{TARGETS[name]}")
        fixture.store(client)
    session.get(f"{base}/params", params={"a b": "c&d", "e": ["f", "g"], "h": "|{}^"})
    session.post(f"{base}/form", data={"a": "b c", "d": "\u00fc"})
    session.post(f"{base}/json", json={"a": [1, None, "\u00fc"]})
    session.post(f"{base}/api-json", json={"a": [1, None, "\u00fc"]})
    session.post(f"{base}/multipart", files={"f": ("n\u00e4me.txt", b"a\r\n--b\r\n", "text/plain")},
                 data={"k": "v"})
    session.post(f"{base}/chunked", data=(part for part in [b"one", b"two" * 9, b""] if part))
    session.get(f"{base}/cookies", cookies={"a": "b c", "d": '"e"'})
    session.get(f"{base}/bearer", headers={"Authorization": "Bearer a.b-c_d"})
    session.options(f"{base}/options")
    session.head(f"{base}/head")
    session.put(f"{base}/put", data=b"\x00\xff\r\n")
    fixture.store(client)

    client = f"Python urllib {sys.version.split()[0]}"
    for name in ("marks-in-query", "marks-in-path", "braces-in-path", "encoded-marks",
                 "broken-percent-in-query", "sub-delimiters", "at-and-colon", "empty-query"):
        urllib.request.urlopen(f"{base}/{name}{TARGETS[name]}".replace("\\", "%5C")).read()
        fixture.store(client)
    urllib.request.urlopen(f"{base}/form", data=b"a=b").read()
    fixture.store(client)

    client = f"Python http.client {sys.version.split()[0]}"
    connection = http.client.HTTPConnection("127.0.0.1", recorder.port)

    def send(method, target, **more):
        connection.request(method, target, **more)
        connection.getresponse().read()
        fixture.store(client)

    for name in ("marks-in-query", "marks-in-path", "json-in-query"):
        send("GET", f"/{name}{TARGETS[name]}".replace(" ", "%20"))
    send("POST", "/chunked", body=iter([b"a" * 10, b"b"]), encode_chunked=True,
         headers={"Transfer-Encoding": "chunked"})
    send("GET", "/latin1-header", headers={"X-Name": "caf\u00e9"})
    send("GET", "/repeated-header", headers={"Accept": "a", "accept": "b"})
    send("OPTIONS", f"http://127.0.0.1:{recorder.port}/absolute-options")


def run_node(recorder, fixture):
    names = {**TARGETS, **{k: v for k, v in RAW_TARGETS.items() if v.isascii()}}
    for part, client in (("fetch", "Node.js fetch "), ("http", "Node.js http ")):
        subprocess.run(["node", HERE / "node_client.mjs", recorder.base, part, json.dumps(names)],
                       check=True, timeout=60)
        fixture.store(client + version("node", "--version"))


def run_go(recorder, fixture):
    client = "Go net/http " + version("go", "version")
    names = {**TARGETS, **RAW_TARGETS}
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "client"
        subprocess.run(["go", "build", "-o", program, HERE / "go_client.go"], check=True)
        subprocess.run([program, recorder.base, json.dumps(names)], check=True, timeout=60)
    fixture.store(client)


def run_chromium(recorder, fixture):
    client = "Chromium " + version("chromium", "--version")
    names = {**TARGETS, **RAW_TARGETS}
    page = (HERE / "page.html").read_text().replace("TARGETS", json.dumps(names))
    # The page loads resources from another origin: the same server by its other name.
    recorder.page = page.replace("OTHER", f"http://localhost:{recorder.port}").encode()

    def visit(target, milliseconds):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                 "--no-first-run", "--disable-background-networking", "--disable-component-update",
                 "--disable-sync", f"--user-data-dir={folder}", "--dump-dom",
                 f"--virtual-time-budget={milliseconds}", recorder.base + target],
                check=False, timeout=120, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    visit("/page", 20_000)
    fixture.store(client + " page")
    for name in ("marks-in-query", "marks-in-path", "utf8-in-path"):
        visit(f"/{name}{TARGETS[name]}", 2_000)
    fixture.store(client + " address bar")


def add_by_hand(fixture):
    """Requests that other clients send, but none of the installed clients."""
    first = b"POST /first HTTP/1.1\r\nHost: app.test\r\nContent-Length: 3\r\n\r\na=b"
    second = b"GET /second HTTP/1.1\r\nHost: app.test\r\n\r\n"
    fixture.add("by hand, old browsers", "CRLF behind a body", first + b"\r\n" + second,
                until="/second")
    fixture.add("by hand, pipelining", "two requests", second.replace(b"second", b"one") + second,
                until="/second")
    fixture.add("by hand, old clients", "CRLF before the request line", b"\r\n" + second,
                until="/second")
    fixture.add("by hand, load balancers", "HTTP/1.0 without Host", b"GET /old HTTP/1.0\r\n\r\n")
    fixture.add("by hand, load balancers", "HTTP/1.0 kept alive",
                b"GET /old HTTP/1.0\r\nHost: app.test\r\nConnection: keep-alive\r\n\r\n")
    fixture.add("by hand, upload libraries", "chunk sizes with zeros and upper case",
                b"POST /chunks HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                b"0005\r\nhello\r\n000A\r\n0123456789\r\n0\r\n\r\n")
    fixture.add("by hand, upload libraries", "chunk extensions",
                b"POST /chunks HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                b'5;name=value\r\nhello\r\n5;q="a b"\r\nworld\r\n0\r\n\r\n')
    fixture.add("by hand, upload libraries", "Chunked in upper case",
                b"POST /chunks HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: Chunked\r\n\r\n"
                b"5\r\nhello\r\n0\r\n\r\n")
    fixture.add("by hand, monitoring", "OPTIONS *",
                b"OPTIONS * HTTP/1.1\r\nHost: app.test\r\n\r\n")
    fixture.add("by hand, AWS SDK", "signed headers",
                b"PUT /bucket/key%20with%20space/a%2Bb HTTP/1.1\r\nHost: app.test\r\n"
                b"Expect: 100-continue\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n"
                b"Authorization: AWS4-HMAC-SHA256 Credential=A/2026/us/s3/aws4_request, "
                b"SignedHeaders=host;x-amz-date, Signature=ab\r\nContent-Length: 4\r\n\r\ndata")
    fixture.add("by hand, gRPC-Web", "binary body",
                b"POST /pkg.Service/Method HTTP/1.1\r\nHost: app.test\r\n"
                b"Content-Type: application/grpc-web+proto\r\nX-Grpc-Web: 1\r\n"
                b"Content-Length: 7\r\n\r\n\x00\x00\x00\x00\x02\x08\x01")
    fixture.add("by hand, WebDAV", "PROPFIND",
                b"PROPFIND /dav/caf%C3%A9/ HTTP/1.1\r\nHost: app.test\r\nDepth: 1\r\n"
                b"Content-Length: 4\r\n\r\n<x/>")
    fixture.add("by hand, IoT", "header names without space behind the colon",
                b"GET /iot HTTP/1.1\r\nHost:app.test\r\nUser-Agent:esp8266\r\nAccept:*/*\r\n\r\n")
    fixture.add("by hand, scripts", "a list of equal lengths is one length",
                b"POST /x HTTP/1.1\r\nHost: app.test\r\nConnection: keep-alive, close\r\n"
                b"Content-Length: 3\r\n\r\na=b")


def main():
    recorder = Recorder()
    fixture = Fixture(recorder)
    for run in (run_chromium, run_node, run_curl, run_python, run_go):
        run(recorder, fixture)
    add_by_hand(fixture)
    fixture.write(pathlib.Path(sys.argv[1]))
    print(f"{len(fixture.records)} requests")


if __name__ == "__main__":
    main()
