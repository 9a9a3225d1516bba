"""A small Ray cluster on this machine, once for all tests that want one."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from countless.cluster.session import ray_module


@pytest.fixture(scope="session")
def ray() -> Iterator[str]:
    """The address of a cluster of one machine with two CPUs, to which this process is connected."""
    pytest.importorskip("ray", reason="Ray is not installed")
    module = ray_module()
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:  # sockets must have short paths
        context = module.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=200 * 2**20,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=str(Path(folder).resolve()),
        )
        yield str(context.address_info["address"])
        module.shutdown()
