"""A certificate for 127.0.0.1 that lives as long as the run, so that TLS can be measured anywhere."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Certificates:
    certificate: Path
    key: Path


@contextmanager
def temporary_certificates() -> Iterator[Certificates | None]:
    """None where there is no openssl program to make them."""
    program = shutil.which("openssl")
    if program is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="brookmq-bench-") as name:
        made = Certificates(Path(name) / "certificate.pem", Path(name) / "key.pem")
        kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-out", str(made.certificate), "-keyout", str(made.key)]
        subprocess.run([program, "req", *kind, *subject, *files], check=True, capture_output=True)
        yield made
