"""Whether a cluster remembers the jobs that have ended."""

from __future__ import annotations

import re
import subprocess

PATIENCE_S = 60


def keeps_accounts() -> bool:
    """Whether `sacct` can tell how a job ended; True also where the cluster does not say.

    Without accounts Snakemake's executor, which finds `sacct` installed, would wait for its answer for ever.
    """
    try:
        done = subprocess.run(
            ["scontrol", "show", "config"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
        return True
    found = re.search(r"^AccountingStorageType\s*=\s*(\S+)", done.stdout, re.MULTILINE)
    return not found or found.group(1) not in ("accounting_storage/none", "(null)")
