import subprocess
import sys
from pathlib import Path

from tests.support.checkout import ROOT


def test_import_contracts_are_kept():
    program = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
