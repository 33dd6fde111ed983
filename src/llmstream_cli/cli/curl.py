"""``--curl``: the same request as a curl command, without the key."""

import json
import shlex

from llmstream_cli.capture import mask_headers
from llmstream_cli.session import Plan
from llmstream_cli.urls import join_url, redact_url


def curl_command(plan: Plan) -> str:
    request = plan.http_request()
    url = redact_url(join_url(plan.target.base_url, request.path))
    headers = {"Content-Type": "application/json", **plan.target.headers, **request.headers}
    lines = [f"curl -N {shlex.quote(url)}"]
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in mask_headers(headers.items())]
    lines.append(f"-d {shlex.quote(json.dumps(request.body, ensure_ascii=False))}")
    return " \\\n  ".join(lines)
