"""The script anyone would write: httpx as it comes, json.loads a line, every delta printed and flushed.

Argument: the URL to post to.
"""

import json
import sys

# Where a development tool has brought click along, httpx would import its own command line and rich as well,
# and the script would start a third slower than it does for its users.
sys.modules["click"] = None  # type: ignore[assignment]

import httpx  # noqa: E402

BODY = {
    "model": "bench",
    "messages": [{"role": "user", "content": "hi"}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


def main() -> None:
    with httpx.stream("POST", sys.argv[1], json=BODY) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if not line.startswith("data:"):
                continue
            data = line[5:].strip()
            if data == "[DONE]":
                break
            for choice in json.loads(data)["choices"]:
                print(choice["delta"].get("content") or "", end="", flush=True)
    print()


if __name__ == "__main__":
    main()
