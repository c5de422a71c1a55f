"""Workbooks computed by LibreOffice Calc, from their formulas alone."""

import os
import re
import shutil
import subprocess
import zipfile
from io import BytesIO
from pathlib import Path

from tests.service.sheet_formulas import Workbook

SOFFICE = os.environ.get("SOFFICE") or shutil.which("soffice") or shutil.which("libreoffice")
PATIENCE_S = 600
ALWAYS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""
"""Formulas are computed whenever a workbook is opened; otherwise Calc may show what was stored beside them."""
_STORED = re.compile(rb"(<f>[^<]*</f>)<v>[^<]*</v>")


def without_stored_values(workbook: bytes) -> bytes:
    """The workbook with nothing beside its formulas: what a spreadsheet then shows, it has computed."""
    emptied = BytesIO()
    with zipfile.ZipFile(BytesIO(workbook)) as source, zipfile.ZipFile(emptied, "w", zipfile.ZIP_DEFLATED) as target:
        for item in source.infolist():
            content = source.read(item)
            if item.filename.startswith("xl/worksheets/"):
                content = _STORED.sub(rb"\1", content)
            target.writestr(item, content)
    return emptied.getvalue()


def computed(workbooks: dict[str, bytes], folder: Path) -> dict[str, bytes]:
    """The same workbooks as Calc stores them once it has computed them. Raises RuntimeError where it gave one back none."""
    if SOFFICE is None:
        raise RuntimeError("no LibreOffice: apt-get install libreoffice-calc, or name its soffice in SOFFICE")
    asked, answered, profile = (folder / name for name in ("asked", "answered", "profile"))
    for made in (asked, answered, profile / "user"):
        made.mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(ALWAYS)
    for name, content in workbooks.items():
        (asked / f"{name}.xlsx").write_bytes(without_stored_values(content))
    run = subprocess.run(
        [
            SOFFICE, f"-env:UserInstallation={profile.resolve().as_uri()}", "--headless", "--norestore", "--convert-to", "xlsx",
            "--outdir", str(answered), *(str(asked / f"{name}.xlsx") for name in workbooks),
        ],
        check=False, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    missing = [name for name in workbooks if not (answered / f"{name}.xlsx").exists()]
    if missing:
        raise RuntimeError(f"LibreOffice gave no {', '.join(missing)}: {run.stderr[-500:]}")
    return {name: (answered / f"{name}.xlsx").read_bytes() for name in workbooks}


def retyped(workbook: bytes, sheet: str, book: Workbook, name: str, value: float) -> bytes:
    """The workbook with another value of an input, in the file itself, as somebody would type it. Raises RuntimeError."""
    row = next(row for row in range(2, 400) if book.text(sheet, 2, row) == name)
    number = list(book.sheets).index(sheet) + 1
    path, cell = f"xl/worksheets/sheet{number}.xml", re.compile(rf'(<c r="C{row}"[^>]*><v>)[^<]*(</v>)'.encode())
    changed = BytesIO()
    with zipfile.ZipFile(BytesIO(workbook)) as source, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as target:
        for item in source.infolist():
            content = source.read(item)
            if item.filename == path:
                content, count = cell.subn(rb"\g<1>" + repr(value).encode() + rb"\g<2>", content)
                if count != 1:
                    raise RuntimeError(f"{name} stands {count} times in {path}")
            target.writestr(item, content)
    return changed.getvalue()
