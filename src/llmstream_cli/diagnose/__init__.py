"""Why did a stop string not act, and what else is wrong with this answer? Findings from evidence. Pure."""

from llmstream_cli.diagnose.endpoints import prompt_in, stops_in
from llmstream_cli.diagnose.evidence import Evidence, Probe, Probed, Tokens, Trial
from llmstream_cli.diagnose.findings import Confidence, Finding, Verdict
from llmstream_cli.diagnose.report import Diagnosis, StopReport, diagnose

__all__ = [
    "Confidence",
    "Diagnosis",
    "Evidence",
    "Finding",
    "Probe",
    "Probed",
    "StopReport",
    "Tokens",
    "Trial",
    "Verdict",
    "diagnose",
    "prompt_in",
    "stops_in",
]
