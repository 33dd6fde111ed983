"""Refused requests that can be met: what a server names in its refusal is left out, or said otherwise."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from llmstream_cli.errors import HttpStatusError, LlmstreamError
from llmstream_cli.request import Request
from llmstream_cli.session.plan import Plan
from llmstream_cli.shapes.base import Shape

_STATUSES = (400, 422)
_NOT_TAKEN = re.compile(
    r"unsupported|not supported|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed|forbidden",
    re.IGNORECASE,
)
"""That the server does not take a parameter; that its value is wrong is another complaint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """``refused``: the body of the refusal speaks of what was sent. ``met``: the request without that."""

    refused: Callable[[Shape, Request, str], bool]
    met: Callable[[Shape, Request], Request]


def _usage_refused(_: Shape, request: Request, body: str) -> bool:
    return request.usage and "stream_options" in body


def _without_usage(_: Shape, request: Request) -> Request:
    return replace(request, usage=False)


def _cap_refused(shape: Shape, request: Request, body: str) -> bool:
    sent = request.cap_field or shape.max_tokens_field
    return (
        request.sampling.max_tokens is not None
        and sent in shape.cap_fields
        and re.search(rf"\b{sent}\b", body) is not None
        and _NOT_TAKEN.search(body) is not None
    )


def _other_cap(shape: Shape, request: Request) -> Request:
    sent = request.cap_field or shape.max_tokens_field
    return replace(request, cap_field=next(field for field in shape.cap_fields if field != sent))


REFUSALS = (
    Refusal(refused=_usage_refused, met=_without_usage),
    Refusal(refused=_cap_refused, met=_other_cap),
)


def met(plan: Plan, failure: LlmstreamError | None, untried: list[Refusal]) -> Plan | None:
    """The plan that meets the refusal `failure`, which is taken out of `untried`; None for any other end."""
    if not isinstance(failure, HttpStatusError) or failure.status not in _STATUSES:
        return None
    body = failure.body.decode("utf-8", "replace")
    for refusal in untried:
        if refusal.refused(plan.shape, plan.request, body):
            untried.remove(refusal)
            return replace(plan, request=refusal.met(plan.shape, plan.request))
    return None
