"""The profiles that are always there: data, written as in a configuration file."""

from collections.abc import Mapping

from llmstream_cli.events import Json
from llmstream_cli.local_profile import LOCAL_DEFAULTS, LOCAL_MODEL, LOCAL_TEMPLATE

LLAMACPP_TELLING_OPTIONS: Mapping[str, bool] = {"verbose": True, "return_progress": True}
"""What makes llama.cpp's OpenAI endpoints say which stop sequence matched, and how far the prompt is read."""

PROFILES: Mapping[str, Mapping[str, Json]] = {
    "ollama": {"shape": "ollama-chat", "base_url": "http://127.0.0.1:11434"},
    # llama.cpp's native /completion tells more about an answer's end but takes a flat prompt. On the chat
    # endpoint the server applies the model's own template, which suits every model that people chat with.
    "llamacpp": {
        "shape": "openai-chat",
        "base_url": "http://127.0.0.1:8080",
        "options": dict(LLAMACPP_TELLING_OPTIONS),
    },
    "vllm": {"shape": "openai-chat", "base_url": "http://127.0.0.1:8000"},
    "tgi": {"shape": "tgi", "base_url": "http://127.0.0.1:3000"},
    "lmstudio": {"shape": "openai-chat", "base_url": "http://127.0.0.1:1234"},
    "sglang": {"shape": "openai-chat", "base_url": "http://127.0.0.1:30000"},
    "openai": {
        "shape": "openai-chat",
        "base_url": "https://api.openai.com/v1",
        "api_key_env": "OPENAI_API_KEY",
    },
    "local": {
        "shape": "llamacpp",
        "model": LOCAL_MODEL,
        "template": dict(LOCAL_TEMPLATE),
        "stop": LOCAL_TEMPLATE["stop"],
        **LOCAL_DEFAULTS,
    },
}

MANAGED: Mapping[str, str] = {"local": "local"}
"""Profile -> the server that llmstream starts and stops for it; its base URL is known only then."""

HOST_VARIABLES: Mapping[str, tuple[str, int]] = {"ollama": ("OLLAMA_HOST", 11434)}
"""Profile -> the variable by which that server's own programs find it, and the port where it names none."""
