"""Whom to trust, and what a failed handshake means."""

import os
import ssl

from llmstream_cli.errors import ConnectError
from llmstream_cli.transport.target import Target

_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR")


def make_context(target: Target, url: str) -> ssl.SSLContext:
    """Trusts `Target.ca_file`, else what the environment names, else the system's certificates and certifi's.

    Raises ConnectError for certificates that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not target.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    named = [("ca_file", target.ca_file)] if target.ca_file else _named_by_environment()
    for name, path in named:
        _load(context, name, path, url)
    if not named:
        from httpcore import default_ssl_context

        return default_ssl_context()
    return context


def handshake_failure(error: OSError, host: str, url: str) -> ConnectError:
    """A TLS handshake with `host` failed: say whose fault it is and what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConnectError(
            f"the certificate of {host} failed verification: {error.verify_message}",
            url=url,
            hint="set SSL_CERT_FILE to a PEM file with the certificate authority that signed it",
        )
    if isinstance(error, ssl.SSLError) and error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return ConnectError(f"{host} does not speak TLS on this port", url=url, hint="try http://")
    reason = (
        error.reason if isinstance(error, ssl.SSLError) and error.reason else error.strerror or str(error)
    )
    return ConnectError(f"the TLS handshake with {host} failed: {reason}", url=url)


def _named_by_environment() -> list[tuple[str, str]]:
    return [(name, path) for name in _VARIABLES if (path := os.environ.get(name))]


def _load(context: ssl.SSLContext, name: str, path: str, url: str) -> None:
    try:
        if os.path.isdir(path):
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    except OSError as error:
        reason = error.strerror or "it holds no certificate in PEM form"
        raise ConnectError(f"cannot use the certificates of {name} ({path}): {reason}", url=url) from None
