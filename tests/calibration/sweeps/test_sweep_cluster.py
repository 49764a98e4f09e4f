import warnings
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

import hockeystick as hs

pytestmark = [
    # Its sockets and event loops are closed by the garbage collector, some of them after the test.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PLAN = hs.DPSGD(noise_multiplier=1, examples=60_000, batch_size=256, epochs=1)
GRID = {"epochs": range(1, 21), "noise_multiplier": [1 + 0.05 * k for k in range(20)]}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with warnings.catch_warnings():
        # distributed and what it loads use what newer releases of others advise against.
        warnings.simplefilter("ignore")
        distributed: Any = pytest.importorskip("distributed", reason="needs the extra test")
        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                local_directory=tmp_path_factory.mktemp("dask"),
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client


@pytest.fixture
def executor(cluster: Any) -> Executor:
    made: Executor = cluster.get_executor()
    return made


def test_a_file_of_a_cluster_is_that_of_this_process_byte_for_byte(
    executor: Executor, tmp_path: Path
) -> None:
    rows = hs.sweep(
        GRID, hs.calibration.AskEpsilon(PLAN, 1e-5), executor, out=tmp_path / "cluster.csv"
    )
    for _ in range(100):
        next(rows)
    getattr(rows, "close")()  # noqa: B009  # Iterator has no close
    told: list[int] = []
    resumed = hs.sweep(
        GRID,
        hs.calibration.AskEpsilon(PLAN, 1e-5),
        executor,
        out=tmp_path / "cluster.csv",
        progress=lambda done, _: told.append(done),
    )
    assert len(list(resumed)) == 400
    assert told[0] >= 100
    for _ in hs.sweep(GRID, hs.calibration.AskEpsilon(PLAN, 1e-5), out=tmp_path / "here.csv"):
        pass
    assert (tmp_path / "cluster.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
