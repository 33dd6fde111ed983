"""Where llmstream keeps its files. No folder is created here.

``XDG_*_HOME`` counts on every system, for people who keep their settings in one place on macOS too.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

APP = "llmstream"
CONFIG_VARIABLE = "LLMSTREAM_CONFIG"


def config_file(env: Mapping[str, str] = os.environ) -> Path:
    """The configuration that people edit; what commands write and private keys stand beside it."""
    named = env.get(CONFIG_VARIABLE)
    return Path(named).expanduser() if named else config_dir(env) / "config.toml"


def config_dir(env: Mapping[str, str] = os.environ) -> Path:
    return _folder("config", env)


def state_dir(env: Mapping[str, str] = os.environ) -> Path:
    """History, the usage log: what should outlive a cleaning of caches."""
    return _folder("state", env)


def cache_dir(env: Mapping[str, str] = os.environ) -> Path:
    return _folder("cache", env)


def _folder(kind: Literal["config", "state", "cache"], env: Mapping[str, str]) -> Path:
    xdg = env.get(f"XDG_{kind.upper()}_HOME", "")
    # The specification says that a relative path is to be ignored.
    if xdg and Path(xdg).is_absolute():
        return Path(xdg) / APP
    import platformdirs

    match kind:
        case "config":
            return Path(platformdirs.user_config_dir(APP, appauthor=False))
        case "state":
            return Path(platformdirs.user_state_dir(APP, appauthor=False))
        case "cache":
            return Path(platformdirs.user_cache_dir(APP, appauthor=False))
