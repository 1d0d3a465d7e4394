"""One place for the words, glyphs and colours of states. Words are sinfo's, squeue's and kubectl's own."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from slinkytui.backend import FleetNode, Job, node_word, squeue_code
from slinkytui.kinds.base import Token


class State(NamedTuple):
    """A state as shown: `code` is squeue's for jobs, the word for nodes."""

    code: str
    word: str
    glyph: str
    ascii: str
    token: Token


_NODE: Final[dict[str, tuple[str, str, Token]]] = {
    "idle": ("○", "o", "text"),
    "mixed": ("◐", "%", "text"),
    "allocated": ("●", "#", "text"),
    "completing": ("◌", "c", "muted"),
    "draining": ("▼", "v", "warning"),
    "drained": ("▽", "V", "warning"),
    "down": ("✖", "X", "error"),
    "fail": ("✖", "X", "error"),
    "failing": ("✖", "X", "error"),
    "error": ("✖", "X", "error"),
    "inval": ("✖", "X", "error"),
    "no_respond": ("✖", "X", "error"),
    "reboot": ("↻", "r", "muted"),
    "reboot^": ("↻", "r", "muted"),
    "powering_up": ("↻", "r", "muted"),
    "powering_down": ("↻", "r", "muted"),
    "powered_down": ("↻", "r", "muted"),
    "power_down": ("↻", "r", "muted"),
    "power_up": ("↻", "r", "muted"),
    "maint": ("◆", "m", "info"),
    "reserved": ("◆", "m", "info"),
    "planned": ("○", "o", "text"),
    "absent": ("?", "?", "warning"),
}

_JOB: Final[dict[str, tuple[str, str, str, Token]]] = {
    "R": ("running", "▶", ">", "text"),
    "PD": ("pending", "·", ".", "muted"),
    "H": ("held", "‖", "=", "muted"),
    "CG": ("completing", "◌", "c", "muted"),
    "CF": ("configuring", "◌", "c", "muted"),
    "CD": ("completed", "✓", "+", "muted"),
    "F": ("failed", "✖", "X", "error"),
    "OOM": ("out of memory", "✖", "X", "error"),
    "NF": ("node fail", "✖", "X", "error"),
    "BF": ("boot fail", "✖", "X", "error"),
    "TO": ("time-out", "◷", "T", "warning"),
    "PR": ("preempted", "◷", "T", "warning"),
    "DL": ("deadline", "◷", "T", "warning"),
    "CA": ("cancelled", "−", "-", "muted"),
    "S": ("suspended", "∥", "s", "warning"),
}


def node_state(node: FleetNode) -> State:
    """A node's state: sinfo's word, `*` when it does not respond. Unheard-of words are shown, with `?`."""
    return _node_state(None if node.slurm is None else node.slurm.states)


@lru_cache(4_096)
def _node_state(states: tuple[str, ...] | None) -> State:
    word = "absent" if states is None else node_word(states)
    bare = word.rstrip("*~#!%$@^-+")
    glyph, plain, token = _NODE.get(bare, ("?", "?", "warning"))
    if word.endswith("*"):
        glyph, plain, token = "✖", "X", "error"
    return State(word, word, glyph, plain, token)


def job_state(job: Job) -> State:
    """A job's state with squeue's code; a held job is pending with a code of its own."""
    return _job_state(job.states, job.hold)


@lru_cache(4_096)
def _job_state(states: tuple[str, ...], hold: bool) -> State:
    """A hundred thousand jobs are in a handful of states."""
    code = squeue_code(states)
    shown = "H" if code == "PD" and hold else code
    word, glyph, plain, token = _JOB.get(shown, (" ".join(s.lower() for s in states) or "unknown", "?", "?", "warning"))
    return State(code or "?", word, glyph, plain, token)
