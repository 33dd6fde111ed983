"""Streams of applications' own back ends, as they are usually written: there is no standard to follow."""


def data(*payloads: str) -> str:
    return "".join(f"data: {payload}\n\n" for payload in payloads)


def _lines(*items: str) -> bytes:
    return "".join(f"{item}\n" for item in items).encode()


SSE = {
    "plain": data("Red", " 👩‍👧", "  is", "[DONE]").encode(),
    "cap": data('{"text": "Red"}', '{"text": ", gre"}', '{"finish_reason": "length"}').encode(),
    "stop": data('{"text": "1, 2"}', '{"finish_reason": "stop"}').encode(),
    "error": (data("Red") + 'event: error\ndata: {"detail": "no index"}\n\n').encode(),
}
NDJSON = {
    "plain": _lines('{"response": "Red"}', '{"response": " 👩‍👧"}', '{"done": true}'),
    "cap": _lines('{"text": "Red"}', '{"text": ", gre"}', '{"finish_reason": "length"}'),
    "stop": _lines('{"text": "1, 2"}', '{"finish_reason": "stop"}'),
    "error": _lines('{"text": "Red"}', '{"error": {"message": "no index"}}'),
}
TEXT = {
    "plain": "\n Red 👩‍👧\r\n{}\n\n".encode(),
    # A text that has begun can tell no error: only what is sent in its place can.
    "error": b'{"error": "no index"}',
}
