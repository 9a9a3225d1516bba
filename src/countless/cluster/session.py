"""A connection to a Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass
from typing import Any

from countless.errors import ClusterError, MissingExtraError

AUTO = "auto"
CONNECT_SECONDS = 5.0  # timeout of the first connection to a cluster
START = "start one with ray start --head, or give the address of another"
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def ray_module() -> Any:
    """Ray, if it is installed."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("ray", "pyarrow"):
            raise
        raise MissingExtraError("a cluster needs Ray: pip install 'countless[ray]'") from None
    return ray


@dataclass(frozen=True)
class ClusterNode:
    """A machine of the cluster, and the resources that Ray may use."""

    key: str  # Ray's id of the machine
    host: str
    cpus: int
    gpus: int


class Cluster:
    """A Ray cluster, as a context manager. A process that was connected before stays connected.

    ``address`` is ``auto`` for the cluster on this machine, or ``HOST:PORT``.
    """

    def __init__(self, address: str = AUTO) -> None:
        self.address = address
        self.ray = ray_module()
        self._has_connected = False

    def __enter__(self) -> Cluster:
        if not self.ray.is_initialized():
            if self.address != AUTO:
                _require_answer(self.address)
            self._connect()
            self._has_connected = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._has_connected:
            self.ray.shutdown()
            self._has_connected = False

    def machines(self) -> list[ClusterNode]:
        """The live machines that have CPUs."""
        machines = []
        for node in self.ray.nodes():
            resources = node["Resources"]
            if node["Alive"] and resources.get("CPU"):
                cpus, gpus = int(resources["CPU"]), int(resources.get("GPU", 0))
                machines.append(ClusterNode(node["NodeID"], node["NodeManagerHostname"], cpus, gpus))
        return machines

    def everywhere(self, function: Any, *arguments: Any) -> list[tuple[ClusterNode, Any]]:
        """The result of a module's function on every machine."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        machines = self.machines()
        remote = self.ray.remote(num_cpus=0)(function)
        calls = [
            remote.options(scheduling_strategy=NodeAffinitySchedulingStrategy(machine.key, soft=False)).remote(
                *arguments
            )
            for machine in machines
        ]
        return list(zip(machines, self.ray.get(calls), strict=True))

    def _refused(self) -> str:
        return (
            f"the server at {self.address} is no Ray cluster, or it refused the connection: give the port of ray start "
            "--head, and the same RAY_AUTH_MODE and RAY_AUTH_TOKEN that the cluster was started with"
        )

    def _connect(self) -> None:
        try:
            self.ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError:
            raise ClusterError(
                f"no Ray cluster runs here: {START}" if self.address == AUTO else self._refused()
            ) from None
        except (RuntimeError, ValueError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ClusterError(f"cannot join the Ray cluster at {self.address}: {lines[0]}") from None


def _require_answer(address: str) -> None:
    """Raise an error at once if nothing answers, because Ray would wait for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ClusterError(f"{address!r} is no address of a cluster: give HOST:PORT, such as 10.0.0.1:6379, or {AUTO}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError):
        raise ClusterError(f"no Ray cluster runs at {address}: {START}") from None
