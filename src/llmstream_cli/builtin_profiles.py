"""The profiles that are always there: data, written as in a configuration file."""

from collections.abc import Mapping

from llmstream_cli.events import Json
from llmstream_cli.local_profile import LOCAL_DEFAULTS, LOCAL_MODEL, LOCAL_TEMPLATE

LLAMACPP_TELLING_OPTIONS: Mapping[str, bool] = {"verbose": True, "return_progress": True}
"""What makes llama.cpp's OpenAI endpoints say which stop sequence matched, and how far the prompt is read."""


def _hosted(base_url: str, key: str, *, shape: str = "openai-chat", **more: Json) -> Mapping[str, Json]:
    """A public API; `key` is the variable that its own client reads."""
    return {"shape": shape, "base_url": base_url, "api_key_env": key, **more}


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
    "openai": _hosted("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": _hosted("https://api.anthropic.com", "ANTHROPIC_API_KEY", shape="anthropic"),
    "gemini": _hosted("https://generativelanguage.googleapis.com", "GEMINI_API_KEY", shape="gemini"),
    "openrouter": _hosted("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": _hosted("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    # It always counts, and refuses to be asked for it (dnakov/anon-kode issue 53).
    "mistral": _hosted("https://api.mistral.ai/v1", "MISTRAL_API_KEY", options={"stream_options": None}),
    "deepseek": _hosted("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    "together": _hosted("https://api.together.ai/v1", "TOGETHER_API_KEY"),
    "xai": _hosted("https://api.x.ai/v1", "XAI_API_KEY"),
    "perplexity": _hosted("https://api.perplexity.ai", "PERPLEXITY_API_KEY", path="/chat/completions"),
    "huggingface": _hosted("https://router.huggingface.co/v1", "HF_TOKEN"),
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
