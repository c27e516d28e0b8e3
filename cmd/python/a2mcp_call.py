#!/usr/bin/env python3
"""Call a tool of a running agent host through its a2mcp bridge.

One file, Python 3.8 or newer, no dependencies: copy it to where it is needed.

    A2MCP_TOKEN=... a2mcp_call.py --url http://127.0.0.1:8765/ read path=/etc/hostname
    a2mcp_call.py --url URL --token-file FILE --tools

Exit codes, the same as those of `a2mcp call`:
    0 done
    1 the tool reported an error
    2 wrong usage
    3 the token was refused
    4 no answer in time; the call may still be running
    5 nothing answers at the address
    6 something answers that is no bridge
"""

import argparse
import base64
import json
import os
import re
import socket
import sys
import threading
import urllib.error
import urllib.request

TOOL_ERROR, USAGE, TOKEN, TIMEOUT, DEAD, PROTOCOL = 1, 2, 3, 4, 5, 6
SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A bridge sends no redirect, and the token is for the bridge alone."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


class Failure(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Bridge:
    """One session with a bridge, made on demand and made again when it is gone."""

    def __init__(self, url, token, timeout):
        self.url, self.token, self.timeout = url, token, timeout
        self.session = None

    def request(self, method, params=None):
        for again in (True, False):
            if self.session is None:
                self.initialize()
            status, _, body = self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}})
            if status == 404 and again:
                self.session = None  # ended, evicted or expired: shake hands again
                continue
            return self.result(status, body)

    def initialize(self):
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a2mcp_call.py", "version": "1"}}
        status, headers, body = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.result(status, body)
        self.session = headers.get("mcp-session-id")
        if not self.session:
            raise Failure(PROTOCOL, f"{self.url} gave no session: is it an a2mcp bridge?")

    def close(self):
        if self.session:
            try:
                self.send("DELETE", None, 2)
            except (OSError, Failure):
                pass  # the bridge forgets it by itself

    def post(self, message):
        try:
            return self.send("POST", json.dumps(message).encode(), self.timeout)
        except (socket.timeout, TimeoutError):
            self.cancel()
            raise Failure(TIMEOUT, "no answer in time; the call may still be running (the audit log tells)") from None
        except urllib.error.URLError as err:
            if isinstance(err.reason, (socket.timeout, TimeoutError)):
                raise Failure(TIMEOUT, f"{self.url} did not answer in time") from None
            raise Failure(DEAD, f"nothing answers at {self.url}: is the host running? ({err.reason})") from None
        except OSError as err:
            raise Failure(DEAD, f"the bridge at {self.url} went away: {err}") from None

    def cancel(self):
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        try:
            self.send("POST", json.dumps(note).encode(), 2)
        except OSError:
            pass  # the exit code says that the call may be running

    def send(self, method, data, timeout):
        headers = {"Authorization": "Bearer " + self.token, "Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream"}
        if self.session:
            headers["mcp-session-id"] = self.session
        request = urllib.request.Request(self.url, data=data, headers=headers, method=method)
        try:
            with OPENER.open(request, timeout=timeout or None) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.headers, answer.read()

    @staticmethod
    def result(status, body):
        if status == 401:
            raise Failure(TOKEN, "the bridge refused the token; `/a2mcp token` in the host shows the right one")
        try:
            reply = json.loads(body)
        except ValueError:
            raise Failure(PROTOCOL, f"HTTP {status} without JSON: is it an a2mcp bridge?") from None
        if "error" in reply:
            raise Failure(PROTOCOL, f"HTTP {status}: {reply['error']['message']} ({reply['error']['code']})")
        return reply["result"]


class Clock(threading.Thread):
    """Shows on a terminal how long a call has been running, after two seconds."""

    def __init__(self, tool):
        super().__init__(daemon=True)
        self.tool, self.done = tool, threading.Event()

    def __enter__(self):
        if sys.stderr.isatty():
            self.start()

    def __exit__(self, *_):
        self.done.set()
        if self.is_alive():
            self.join()

    def run(self):
        seconds = 1
        while not self.done.wait(1):
            if seconds >= 2:
                print(f"\r{json.dumps(self.tool)} {seconds}s", end="", file=sys.stderr, flush=True)
            seconds += 1
        if seconds > 2:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def arguments(pairs, whole):
    if whole is not None:
        try:
            value = json.loads(sys.stdin.read() if whole == "-" else whole)
        except ValueError as err:
            raise Failure(USAGE, f"--json takes a JSON object: {err}") from None
        if not isinstance(value, dict):
            raise Failure(USAGE, "--json takes a JSON object")
        return value
    result = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise Failure(USAGE, f"{pair!r} is no argument; write key=text or key:=JSON")
        if key.endswith(":"):
            try:
                result[key[:-1]] = json.loads(value)
            except ValueError:
                raise Failure(USAGE, f"the value of {key[:-1]} is not JSON: {value}") from None
        else:
            result[key] = value
    return result


def limit(text):
    """Seconds in a number of them, or in one with units as in 90s, 5m or 1h30m."""
    try:
        seconds = float(text)
    except ValueError:
        if not re.fullmatch(r"([0-9.]+(ms|s|m|h))+", text):
            raise argparse.ArgumentTypeError("write a number of seconds, or one with units as in 90s, 5m or 1h30m") from None
        units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
        seconds = sum(float(number) * units[unit] for number, unit in re.findall(r"([0-9.]+)(ms|s|m|h)", text))
    if not 0 <= seconds <= 10_000 * 3600:
        raise argparse.ArgumentTypeError("write a number of seconds, or one with units as in 90s, 5m or 1h30m")
    return seconds


def save(folder, tool, index, block):
    name = "".join("_" if c in '/\\:*?"<>|' or c < " " else c for c in tool)
    while True:
        path = os.path.join(folder, f"{name}-{index}{SUFFIXES.get(block.get('mimeType'), '')}")
        try:
            with open(path, "xb") as file:
                file.write(base64.b64decode(block["data"]))
            return path
        except FileExistsError:
            index += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=__doc__.split("\n\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", nargs="?", help="name of the tool")
    parser.add_argument("arguments", nargs="*", metavar="key=value", help="key=text, or key:=JSON")
    parser.add_argument("--url", default=os.environ.get("A2MCP_URL"), help="address of the bridge (or A2MCP_URL)")
    parser.add_argument("--token-file", help="file that holds the token (or A2MCP_TOKEN)")
    parser.add_argument("--json", metavar="OBJECT", help="all arguments as one JSON object, - for standard input")
    parser.add_argument("--timeout", type=limit, default="5m", help="how long to wait, in seconds or as in 90s, 5m, 1h30m; 0 is for ever (default 5m)")
    parser.add_argument("--out", default=".", metavar="DIR", help="folder for images")
    parser.add_argument("--tools", action="store_true", help="list the tools instead")
    options = parser.parse_args()

    bridge = None
    try:
        token = os.environ.get("A2MCP_TOKEN", "")
        if options.token_file:
            try:
                with open(options.token_file, encoding="utf-8") as file:
                    token = file.read().strip()
            except OSError as err:
                raise Failure(USAGE, f"reading the token: {err}") from None
        if not options.url or not token:
            raise Failure(USAGE, "give --url, and --token-file or A2MCP_TOKEN")
        bridge = Bridge(options.url, token, options.timeout)
        if options.tools:
            for tool in bridge.request("tools/list")["tools"]:
                print(tool["name"])
            return 0
        if not options.tool:
            raise Failure(USAGE, "name a tool; --tools lists them")
        sent = {"name": options.tool, "arguments": arguments(options.arguments, options.json)}
        with Clock(options.tool):
            answer = bridge.request("tools/call", sent)
        for index, block in enumerate(answer["content"]):
            print(save(options.out, options.tool, index, block) if block["type"] == "image" else block["text"])
        return TOOL_ERROR if answer["isError"] else 0
    except Failure as failure:
        print("a2mcp_call.py:", failure, file=sys.stderr)
        return failure.code
    finally:
        if bridge:
            bridge.close()


if __name__ == "__main__":
    sys.exit(main())
