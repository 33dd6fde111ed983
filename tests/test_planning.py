"""Planning: which headers go with a shape, and what is said of settings that its API has no place for."""

from pathlib import Path
from typing import Any

import pytest

from llmstream_cli.keys import PROVIDER_VARIABLES, Key, Secret
from llmstream_cli.planning import make_plan, make_target
from llmstream_cli.profiles import load_store
from llmstream_cli.request import Message
from llmstream_cli.settings import Flags, Settings, resolve
from llmstream_cli.transport import Target
from llmstream_cli.urls import join_url, origin
from tests.support.wire_server import WireServer, json_reply

KEY = Key(Secret("sk-test"), "a test")
HI = (Message(role="user", content="Hi"),)


def settle(folder: Path, config: str = "", **given: Any) -> Settings:
    (folder / "config.toml").write_text(config, encoding="utf-8")
    return resolve(Flags(given=given), {}, load_store(folder / "config.toml"))


def target_of(folder: Path, **given: Any) -> Target:
    return make_target(settle(folder, base_url="h:1", **given), KEY)


class TestHeaders:
    @pytest.mark.parametrize("shape", ["auto", "openai-chat", "openai-responses", "ollama-chat"])
    def test_a_bearer_token(self, tmp_path: Path, shape: str) -> None:
        target = target_of(tmp_path, shape=shape)
        assert target.headers == {"Authorization": "Bearer sk-test"}
        assert target.secrets == ("sk-test",)

    def test_what_anthropic_wants(self, tmp_path: Path) -> None:
        target = target_of(tmp_path, shape="anthropic")
        assert target.headers == {"anthropic-version": "2023-06-01", "x-api-key": "sk-test"}
        assert target.secrets == ("sk-test",)

    def test_the_version_is_sent_without_a_key_too(self, tmp_path: Path) -> None:
        settings = settle(tmp_path, base_url="h:1", shape="anthropic")
        assert make_target(settings, None).headers == {"anthropic-version": "2023-06-01"}

    def test_the_users_headers_win_however_they_are_written(self, tmp_path: Path) -> None:
        headers = ["Anthropic-Version: 2026-10-21", "X-API-Key: other"]
        target = target_of(tmp_path, shape="anthropic", headers=headers)
        assert target.headers == {"Anthropic-Version": "2026-10-21", "X-API-Key": "other"}

    @pytest.mark.parametrize("shape", ["anthropic", "openai-chat"])
    def test_no_key_beside_the_users_own_authorization(self, tmp_path: Path, shape: str) -> None:
        headers = ["authorization: Bearer other", "anthropic-version: 1"]
        target = target_of(tmp_path, shape=shape, headers=headers)
        assert target.headers == {"authorization": "Bearer other", "anthropic-version": "1"}

    @pytest.mark.parametrize(
        ("shape", "auth", "sent"),
        [
            ("anthropic", "bearer", ("Authorization", "Bearer sk-test")),
            ("openai-chat", "api-key", ("api-key", "sk-test")),
            ("openai-chat", "x-api-key", ("x-api-key", "sk-test")),
        ],
    )
    def test_a_profile_may_send_the_key_another_way(
        self, tmp_path: Path, shape: str, auth: str, sent: tuple[str, str]
    ) -> None:
        # vLLM's /v1/messages takes only a bearer token (capture vllm/auth_x_api_key).
        config = f'[profiles.p]\nbase_url = "h:1"\nshape = "{shape}"\nauth = "{auth}"\n'
        target = make_target(settle(tmp_path, config, profile="p"), KEY)
        assert {name: value for name, value in target.headers.items() if "sk-test" in value} == dict([sent])

    def test_the_server_is_asked_who_it_is_before_the_shape_is_known(self, tmp_path: Path) -> None:
        listing = json_reply({"object": "list", "data": [{"id": "m", "owned_by": "vllm"}]})
        with WireServer(listing) as server:
            settings = settle(tmp_path, base_url=server.base_url)
            plan = make_plan(settings, make_target(settings, KEY), HI, explain=lambda _: None)
            assert [request.headers["authorization"] for request in server.requests] == ["Bearer sk-test"]
        assert plan.shape.name == "openai-chat"
        assert plan.target.headers == {"Authorization": "Bearer sk-test"}


class TestCapField:
    @staticmethod
    def body(folder: Path, **given: Any) -> dict[str, Any]:
        settings = settle(folder, model="m", max_tokens="7", **given)
        return dict(make_plan(settings, make_target(settings, KEY), HI, explain=print).http_request().body)

    def test_openai_takes_the_newer_field(self, tmp_path: Path) -> None:
        for body in (
            self.body(tmp_path, profile="openai"),
            self.body(tmp_path, base_url="https://api.openai.com", shape="openai-chat"),
        ):
            assert body["max_completion_tokens"] == 7
            assert "max_tokens" not in body

    @pytest.mark.parametrize("profile", ["groq", "openrouter", "deepseek", "vllm", "llamacpp"])
    def test_others_the_older_one(self, tmp_path: Path, profile: str) -> None:
        body = self.body(tmp_path, profile=profile)
        assert body["max_tokens"] == 7
        assert "max_completion_tokens" not in body


@pytest.mark.parametrize(
    ("profile", "url", "header"),
    [
        ("openai", "https://api.openai.com/v1/chat/completions", "Authorization"),
        ("anthropic", "https://api.anthropic.com/v1/messages", "x-api-key"),
        (
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
            "x-goog-api-key",
        ),
        ("openrouter", "https://openrouter.ai/api/v1/chat/completions", "Authorization"),
        ("groq", "https://api.groq.com/openai/v1/chat/completions", "Authorization"),
        ("mistral", "https://api.mistral.ai/v1/chat/completions", "Authorization"),
        ("deepseek", "https://api.deepseek.com/v1/chat/completions", "Authorization"),
        ("together", "https://api.together.ai/v1/chat/completions", "Authorization"),
        ("xai", "https://api.x.ai/v1/chat/completions", "Authorization"),
        ("perplexity", "https://api.perplexity.ai/chat/completions", "Authorization"),
        ("huggingface", "https://router.huggingface.co/v1/chat/completions", "Authorization"),
    ],
)
def test_the_hosts_that_are_known(tmp_path: Path, profile: str, url: str, header: str) -> None:
    settings = settle(tmp_path, profile=profile, model="m")
    target = make_target(settings, KEY)
    plan = make_plan(settings, target, HI, explain=print)
    assert join_url(target.base_url, plan.http_request().path) == url
    assert "sk-test" in target.headers[header]
    assert ("stream_options" in plan.http_request().body) == (
        profile not in ("mistral", "anthropic", "gemini")
    )
    assert (settings.api_key_env,) == PROVIDER_VARIABLES[origin(url)][:1]


class TestWarnings:
    @staticmethod
    def warnings(folder: Path, **given: Any) -> list[str]:
        said: list[str] = []
        settings = settle(folder, base_url="h:1", model="m", **given)
        make_plan(settings, make_target(settings, None), HI, explain=lambda _: None, warn=said.append)
        return said

    def test_a_stop_sequence_where_the_api_has_none(self, tmp_path: Path) -> None:
        assert self.warnings(tmp_path, shape="openai-responses", stop=["END"]) == [
            "openai-responses has no stop parameter: the answer is cut here, by llmstream."
        ]
        assert self.warnings(tmp_path, shape="openai-responses", stop=["END"], enforce_stop=False) == [
            "openai-responses has no stop parameter: with --no-enforce-stop nothing stops there."
        ]

    @pytest.mark.parametrize("shape", ["openai-responses", "anthropic"])
    def test_a_seed_where_the_api_has_none(self, tmp_path: Path, shape: str) -> None:
        assert self.warnings(tmp_path, shape=shape, seed="7") == [
            f"{shape} has no seed parameter: --seed is not sent (-o seed=7 sends it)."
        ]

    def test_nothing_where_all_is_taken(self, tmp_path: Path) -> None:
        assert self.warnings(tmp_path, shape="openai-chat", stop=["END"], seed="7") == []
        assert self.warnings(tmp_path, shape="anthropic", stop=["END"]) == []
        assert self.warnings(tmp_path, shape="openai-responses") == []
