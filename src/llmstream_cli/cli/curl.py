"""``--curl``: the same request as a curl command, without the key."""

import json
import shlex

from llmstream_cli.capture import mask_headers, mask_secrets
from llmstream_cli.session import Plan
from llmstream_cli.urls import join_url, redact_url


def curl_command(plan: Plan) -> str:
    """For a POSIX shell; what by its name or value is a secret is masked."""
    request = plan.http_request()
    url = redact_url(join_url(plan.target.base_url, request.path))
    has_body = request.method != "GET"
    content_type = {"Content-Type": "application/json"} if has_body else {}
    headers = {**content_type, **plan.target.headers, **request.headers}
    lines = [f"curl -N {'-G ' if request.query_fields else ''}{shlex.quote(url)}"]
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in mask_headers(headers.items())]
    lines += [f"--data-urlencode {shlex.quote(f'{key}={text}')}" for key, text in request.query_fields]
    if has_body:
        lines.append(f"-d {shlex.quote(json.dumps(request.body, ensure_ascii=False))}")
    masked: list[str] = mask_secrets(lines, plan.target.secrets)
    return " \\\n  ".join(masked)
