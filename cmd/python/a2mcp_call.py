#!/usr/bin/env python3
"""Call a tool of a running agent host through its a2mcp bridge.

One file, Python 3.8 or newer, no dependencies: copy it to where it is needed.

    A2MCP_TOKEN=... a2mcp_call.py --url http://127.0.0.1:8765/ read path=/etc/hostname
    a2mcp_call.py --url URL --token-file FILE --tools

Exit codes, the same as those of `a2mcp call`:
    0 done
    1 the tool reported an error
    2 wrong usage, or no bridge could be chosen
    3 the token was refused
    4 no answer in time, or the connection ended before it; the call may have run
    5 nothing answers at the address
    6 something answers that is no bridge
    7 the answer came, but could not be written (standard output, or the folder of --out)
    130 interrupted with Ctrl-C, the call cancelled; other signals: 128 + their number
"""

import argparse
import base64
import contextlib
import http.client
import ipaddress
import json
import os
import re
import signal
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

TOOL_ERROR, USAGE, TOKEN, TIMEOUT, DEAD, PROTOCOL, UNWRITTEN, INTERRUPTED = 1, 2, 3, 4, 5, 6, 7, 128
SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


class Failure(Exception):
    """Its arguments are the exit code and the text."""


@contextlib.contextmanager
def signals():
    """Raise KeyboardInterrupt with its number for a signal that ends programs, but for those that whoever started this
    one ignores (nohup). One that comes later ends the program at once."""
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]

    def handle(handler):
        for number in numbers:
            signal.signal(number, handler)

    def caught(number, _):
        raise KeyboardInterrupt(number)

    handle(caught)
    try:
        yield
    finally:
        handle(signal.SIG_DFL)


@contextlib.contextmanager
def clock(name):
    """Show on a terminal how long a call has been running, after two seconds."""
    done = threading.Event()

    def tick():
        seconds = 1
        while not done.wait(1):
            if seconds >= 2:
                print(f"\r{json.dumps(name)} {seconds}s", end="", file=sys.stderr, flush=True)
            seconds += 1
        if seconds > 2:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tick, daemon=True)
    if sys.stderr and sys.stderr.isatty():
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


class AsItComes(urllib.request.HTTPErrorProcessor):
    """Every answer is an answer, and no redirect is followed: a bridge sends none, and the token is for it alone."""

    http_response = https_response = lambda self, _, response: response


def is_loopback(host):
    """None if it is neither an address in full nor a name: where 127.1 leads, which ends in a number, the system knows."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host.partition("%")[0])
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    labels = host.split(".")
    named = all(re.fullmatch("[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", label) for label in labels)
    return host == "localhost" if named and not re.fullmatch("[0-9]+|0x[0-9a-f]*", labels[-1]) else None


def field(value, key, kind):
    """A member of an answer that has to be there."""
    if not isinstance(value, dict) or not isinstance(value.get(key), kind):
        raise Failure(PROTOCOL, f"an answer without {key}: is it an a2mcp bridge?")
    return value[key]


class Bridge:
    """One session with a bridge, made on demand and made again when it is gone."""

    def __init__(self, url, token, timeout):
        self.url, self.token = url, token
        self.deadline = time.monotonic() + timeout if timeout else None
        self.session, self.called = None, False
        proxies = {} if is_loopback(urllib.parse.urlsplit(url).hostname) else None  # None: those of the environment
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies), AsItComes)

    def request(self, method, params):
        """Return the result of a request; params is JSON."""
        for again in (True, False):
            if self.session is None:
                self.initialize()
            self.called = self.called or method == "tools/call"
            status, _, body = self.post('{"jsonrpc":"2.0","id":1,"method":%s,"params":%s}' % (json.dumps(method), params))
            if status == 404 and again:
                self.session = None  # ended, evicted or expired: shake hands again
                continue
            return self.result(status, body)

    def initialize(self):
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a2mcp_call.py", "version": "1"}}
        status, headers, body = self.post(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
        self.result(status, body)
        self.session = headers.get("mcp-session-id")
        if not self.session:
            raise Failure(PROTOCOL, f"{self.url} gave no session: is it an a2mcp bridge?")

    def close(self):
        with contextlib.suppress(Exception):  # the bridge forgets it by itself
            if self.session:
                self.send("DELETE", None, time.monotonic() + 2)

    def post(self, message):
        try:
            return self.send("POST", message.encode(), self.deadline)
        except Exception as err:
            raise self.lost(err) from None

    def lost(self, err):
        """What an exchange that failed means for the call."""
        if isinstance(err, KeyboardInterrupt):
            return Failure(INTERRUPTED + err.args[0], "interrupted; " + self.give_up())
        if isinstance(err, TimeoutError):
            self.give_up()
            return Failure(TIMEOUT, "no answer in time; " + self.fate("the call may still be running (the audit log tells)"))
        if isinstance(err, urllib.error.URLError):  # while it was made, or while the request went out
            err = err.reason
            ended = isinstance(err, (BrokenPipeError, ConnectionResetError, ConnectionAbortedError))
            code = PROTOCOL if isinstance(err, ssl.SSLError) else TIMEOUT if ended else DEAD
        else:
            code = TIMEOUT if isinstance(err, (OSError, http.client.IncompleteRead)) else DEAD if isinstance(err, UnicodeError) else PROTOCOL
        return Failure(code, {
            TIMEOUT: "the connection ended before an answer; " + self.fate("the call may have run (the audit log tells)"),
            DEAD: f"nothing answers at {self.url}: is the host running? ({err})",
            PROTOCOL: f"what answers at {self.url} is no bridge: {err!r}",
        }[code])

    def fate(self, sent):
        """What became of the call; what is left of it counts once it was sent."""
        return sent if self.called else "nothing was called"

    def give_up(self):
        """Cancel the call that nobody waits for any more, and say what came of that."""
        note = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
        with contextlib.suppress(Exception):
            if self.called and self.send("POST", note, time.monotonic() + 2)[0] == 202:
                return "the call was cancelled"
        return self.fate("the call may still be running (the audit log tells)")

    def send(self, method, data, deadline):
        """Exchange in a thread, which a server that says too little, or that little by little, does not hold up."""
        came, done = [], threading.Event()

        def exchange():
            try:
                came.append(self.exchange(method, data))
            except Exception as err:
                came.append(err)
            done.set()

        threading.Thread(target=exchange, daemon=True).start()
        while not done.wait(0.2):  # in steps: on Windows a signal counts after each
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError
        if isinstance(came[0], Exception):
            raise came[0]
        return came[0]

    def exchange(self, method, data):
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream"}
        if self.session:
            headers["mcp-session-id"] = self.session
        with self.opener.open(urllib.request.Request(self.url, data=data, headers=headers, method=method)) as answer:
            return answer.status, answer.headers, answer.read()

    @staticmethod
    def result(status, body):
        if status == 401:
            raise Failure(TOKEN, "the bridge refused the token; `/a2mcp token` in the host shows the right one")
        try:
            reply = json.loads(body.decode())
        except (ValueError, RecursionError):
            raise Failure(PROTOCOL, f"HTTP {status} without JSON: is it an a2mcp bridge?") from None
        if isinstance(reply, dict) and reply.get("error") is not None:
            error = field(reply, "error", dict)
            raise Failure(PROTOCOL, f"HTTP {status}: {error.get('message')} ({error.get('code')})")
        return field(reply, "result", dict)


def check(text, kind=object):
    """Return a text, which is sent as it stands, if it is JSON of a kind. NaN is none, as int says."""
    if not isinstance(json.loads(text, parse_constant=int, parse_int=str, parse_float=str), kind):
        raise ValueError("this is another value")
    return text


def arguments(pairs, whole):
    """The arguments as a JSON object, from key=text and key:=JSON or from the whole."""
    if whole is not None:
        try:
            return check(sys.stdin.buffer.read().decode() if whole == "-" and sys.stdin else whole, dict)
        except (OSError, ValueError, RecursionError) as err:
            raise Failure(USAGE, f"--json takes a JSON object: {err}") from None
    members = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise Failure(USAGE, f"{pair!r} is no argument; write key=text or key:=JSON")
        is_json, key = key.endswith(":"), re.sub(":$", "", key)
        try:
            members.append(json.dumps(key) + ":" + (check(value) if is_json else json.dumps(value)))
        except (ValueError, RecursionError):
            raise Failure(USAGE, f"the value of {key} is not JSON: {value}") from None
    return "{" + ",".join(members) + "}"


def limit(text):
    """Seconds in a number of them, or in one with units as in 90s, 5m or 1h30m."""
    try:
        seconds = float(text)
    except ValueError:
        units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
        parts = re.findall(r"([0-9.]+)(ms|s|m|h)", text)
        seconds = sum(float(number) * units[unit] for number, unit in parts) if "".join(map("".join, parts)) == text else -1
    if not 0 <= seconds <= 10_000 * 3600:
        raise argparse.ArgumentTypeError("write a number of seconds, or one with units as in 90s, 5m or 1h30m")
    return seconds


def value(text):
    """An empty one comes from a shell variable that is not set."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: give it a value or leave it out")
    return text


def printable(text):
    """Escape what would move a terminal's cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def read_token(file):
    """The token without the white space around it. What cannot stand in a header is refused by a text without it."""
    source, token = file or "A2MCP_TOKEN", os.environ.get("A2MCP_TOKEN", "")
    if file:
        try:
            with open(file, encoding="latin-1") as opened:
                token = opened.read()
        except OSError as err:
            raise Failure(USAGE, f"reading the token: {err}") from None
    token = token.strip(" \t\r\n\v\f")
    if not re.fullmatch("[!-~]+", token):
        raise Failure(USAGE, f"the token in {source} has to be one word of visible ASCII; give --token-file or set A2MCP_TOKEN")
    return token


def check_address(url):
    with contextlib.suppress(ValueError):  # of the port, or of brackets
        parts = urllib.parse.urlsplit(url)
        if parts.scheme in ("http", "https") and is_loopback(parts.hostname or "") is not None and parts.port != 0 and re.fullmatch("[!-~]+", url):
            return url
    raise Failure(USAGE, f"{url!r} is no address; give --url or set A2MCP_URL to http://HOST:PORT/ with a name or an IP address written in full")


def save(folder, tool, index, image, kind):
    name = "".join("_" if c in '/\\:*?"<>|' or c < " " else c for c in tool)
    while True:
        path = os.path.join(folder, f"{name}-{index}{SUFFIXES.get(kind, '')}")
        try:
            with open(path, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(image)
            return path
        except FileExistsError:
            index += 1
        except OSError as err:
            with contextlib.suppress(OSError):
                os.remove(path)
            raise Failure(UNWRITTEN, f"the answer came, but an image could not be saved: {err}") from None


def write(text):
    """Print a text as UTF-8, whatever the terminal has; one that ends its last line as it is."""
    try:
        if sys.stdout is None:
            raise OSError("it is closed")
        sys.stdout.buffer.write((text[:-1] if text.endswith("\n") else text).encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.buffer.flush()
    except OSError as err:
        if sys.stdout is not None:  # else Python tries once more at the end, and says so
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Failure(UNWRITTEN, f"the answer came, but not all of it could be written: {err}") from None


def show(answer, tool, folder):
    """Write the content of a result, all of it that can be written."""
    blocks, problem = [], None
    for block in field(answer, "content", list):
        try:
            image = base64.b64decode(field(block, "data", str), validate=True) if field(block, "type", str) == "image" else None
        except ValueError as err:
            raise Failure(PROTOCOL, f"the answer is no tool result: an image: {err}") from None
        blocks.append((block, image, field(block, "text", str) if image is None else ""))
    for index, (block, image, text) in enumerate(blocks):
        try:
            write(text if image is None else save(folder, tool, index, image, str(block.get("mimeType"))))
        except Failure as failure:
            problem = failure
    if problem:
        raise problem
    return TOOL_ERROR if answer.get("isError") else 0


def run(options, bridge):
    method, params = "tools/list", "{}"
    if not options.tools:
        method, params = "tools/call", '{"name":%s,"arguments":%s}' % (json.dumps(options.tool), arguments(options.arguments, options.json))
    try:
        with clock(options.tool or method), signals():
            answer = bridge.request(method, params)
    except KeyboardInterrupt as err:
        raise bridge.lost(err) from None
    finally:
        bridge.close()
    if not options.tools:
        return show(answer, options.tool, options.out)
    write("\n".join(printable(field(tool, "name", str)) for tool in field(answer, "tools", list)))
    return 0


def main():
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=__doc__.split("\n\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", nargs="?", help="name of the tool")
    parser.add_argument("arguments", nargs="*", metavar="key=value", help="key=text, or key:=JSON")
    parser.add_argument("--url", type=value, help="address of the bridge (or A2MCP_URL)")
    parser.add_argument("--token-file", type=value, metavar="FILE", help="file that holds the token (or A2MCP_TOKEN)")
    parser.add_argument("--json", type=value, metavar="OBJECT", help="all arguments as one JSON object, - for standard input")
    parser.add_argument("--timeout", type=limit, default="5m", help="how long to wait, in seconds or as in 90s, 5m, 1h30m; 0 is for ever (default 5m)")
    parser.add_argument("--out", type=value, default=".", metavar="DIR", help="folder for images")
    parser.add_argument("--tools", action="store_true", help="list the tools instead")
    options = parser.parse_args()
    try:
        for text in [options.tool or "", options.json or ""] + options.arguments:
            if any("\ud800" <= c <= "\udfff" for c in text):
                raise Failure(USAGE, f"the argument {text!r} is not UTF-8")
        url = check_address(options.url or os.environ.get("A2MCP_URL", ""))
        if not options.tool and not options.tools:
            raise Failure(USAGE, "name a tool; --tools lists them")
        if not os.path.isdir(options.out):
            raise Failure(USAGE, f"--out: there is no folder {options.out}")
        return run(options, Bridge(url, read_token(options.token_file), options.timeout))
    except Failure as failure:
        code, text = failure.args
        print("a2mcp_call.py:", printable(text), file=sys.stderr)
        return code


if __name__ == "__main__":
    sys.exit(main())
