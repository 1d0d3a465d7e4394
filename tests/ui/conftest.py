"""Pictures lie in snapshots/ at the top, and name no host: Textual's SVGs would fetch a font."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import pytest_textual_snapshot as plugin
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

_TOP = Path(__file__).parents[2] / "snapshots" / "test_pictures"
_normal = plugin.normalize_svg


def _without_fonts(svg: str) -> str:
    return re.sub(r"\s*@font-face \{.*?\}", "", _normal(svg), flags=re.S)


@pytest.fixture(autouse=True)
def _pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "normalize_svg", _without_fonts)
    monkeypatch.setattr(plugin.SVGImageExtension, "dirname", classmethod(lambda cls, *, test_location: str(_TOP)))


class Text(SingleFileSnapshotExtension):
    """A screen as plain text: what a person reads, in a form that a diff shows."""

    _file_extension = "txt"
    _write_mode = WriteMode.TEXT

    @classmethod
    def dirname(cls, *, test_location: object) -> str:
        return str(_TOP)

    @classmethod
    def get_snapshot_name(cls, *, test_location: object, index: object = 0) -> str:
        return str(index)
