from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str | bytes], str]:
    def written(content: str | bytes) -> str:
        path = tmp_path / "plan.toml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return written
