"""Gradient workers: processes of one thread each that compute the gradients of parts of every batch.

PyTorch's own threads split every operation and wait for each other after it. On a busy machine that is slow, because
every operation waits for the slowest thread. Processes that split whole batches wait once a step, asleep, so that
training slows down only in proportion to its processor time.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import mmap
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe

import numpy as np
import torch
from torch import Tensor

from countless.errors import TrainingError
from countless.train.tasks.task import BITS, Inputs, Task, stream

logger = logging.getLogger(__name__)

LEAST_ROWS, LEAST_STRINGS = 64, 4  # of a part: smaller parts take as long, and a string has many characters
MOST_PARTS = 8
INPUTS: tuple[Inputs, ...] = ("as trained", "masked", "unmasked")
STEP = -1  # the kind of a message that requests gradients; other kinds are indices into INPUTS
HEADER = 4  # numbers of a message before the row numbers
STOPPING = (signal.SIGINT, signal.SIGTERM)  # signals that end this process, which then ends its workers
CAN_FORK = sys.platform == "linux"  # elsewhere it is not safe


def parts_of(task: Task) -> int:
    """The number of parts of each batch: one for each of PyTorch's threads, if the parts are large enough."""
    least = LEAST_ROWS if task.unit == "row" else LEAST_STRINGS
    return max(1, min(torch.get_num_threads(), task.batch // least, MOST_PARTS)) if CAN_FORK else 1


class GradientWorkers:
    """Computes gradients of ``task``, each batch split into ``parts``. Use it as a context manager.

    This process computes the first part, and one worker process each of the others. Gradients are added in the order of
    the parts, and each part of each step has its own random numbers. So the sums are the same if a worker cannot be
    started and this process computes its part too.
    """

    def __init__(self, task: Task, seed: int, parts: int, threads: int | None = None) -> None:
        self.parts = parts
        self.threads = threads or (1 if CAN_FORK else torch.get_num_threads())  # of each process
        self._task, self._seed = task, seed
        self._trained: list[Tensor] = [parameter for parameter in task.model.parameters() if parameter.requires_grad]
        self._threads_before = torch.get_num_threads()
        self._connections: dict[int, Connection] = {}  # by part
        self._processes: list[int] = []
        self._weights: list[Tensor] = []
        self._gradients: dict[int, list[Tensor]] = {}
        self._cpus: list[int] = []

    def __enter__(self) -> GradientWorkers:
        torch.set_num_threads(self.threads)
        if self.parts > 1:
            self._cpus = sorted(os.sched_getaffinity(0))
            self._weights = _shared_like(self._trained)
            try:
                for part in range(1, self.parts):
                    self._gradients[part] = _shared_like(self._trained)
                    self._fork_worker(part)
            except OSError as error:
                logger.warning("cannot start processes to train (%s): training continues with fewer", error.strerror)
            self._pin_to_cpus(0)
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()
        for process in self._processes:
            with contextlib.suppress(OSError):  # the process has ended
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
        if self._cpus:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, self._cpus)
        torch.set_num_threads(self._threads_before)

    def backward(self, rows: Tensor, generator: torch.Generator, fraction: float, update: int, batch: int) -> float:
        """Set the gradients of the loss of these ``rows`` of a batch of ``batch`` rows, and return that loss in bits.

        ``generator`` is for the first part. The other parts seed their random numbers with ``update``.
        """
        self._write_weights()
        for part, connection in self._connections.items():
            self._send(connection, STEP, rows[part :: self.parts], update, fraction, batch)
        bits = self._backward(rows[:: self.parts], generator, fraction, batch)
        for part in range(1, self.parts):
            if part in self._connections:
                bits += self._receive(self._connections[part])
                torch._foreach_add_(_gradients_of(self._trained), self._gradients[part])
            else:
                summed = [gradient.clone() for gradient in _gradients_of(self._trained)]
                bits += self._backward(rows[part :: self.parts], self._stream(part, update), fraction, batch)
                torch._foreach_add_(_gradients_of(self._trained), summed)
        return bits

    def bits(self, measurements: Sequence[tuple[Tensor, Inputs]]) -> list[float]:
        """Bits per unit for each measurement: rows, and which inputs are masked. The masks are always the same."""
        self._write_weights()
        pending = {}
        for index, (rows, inputs) in enumerate(measurements):
            if (part := index % self.parts) in self._connections:
                pending[index] = self._connections[part]
                self._send(pending[index], INPUTS.index(inputs), rows)
        bits = [0.0 if index in pending else self._bits(*measurement) for index, measurement in enumerate(measurements)]
        for index, connection in pending.items():
            bits[index] = self._receive(connection)
        return bits

    def _backward(self, rows: Tensor, generator: torch.Generator, fraction: float, batch: int) -> float:
        """Set the gradients of one part of a batch."""
        if not len(rows):
            self._task.model.zero_grad()
            return 0.0
        return BITS * self._task.learn(rows, generator, fraction, len(rows) / batch)

    def _bits(self, rows: Tensor, inputs: Inputs) -> float:
        return self._task.bits(rows, inputs, stream(self._seed, 0))

    def _stream(self, part: int, update: int) -> torch.Generator:
        return stream(self._seed, 1, part, update)

    def _write_weights(self) -> None:
        if self._connections:
            with torch.no_grad():
                torch._foreach_copy_(self._weights, self._trained)

    def _pin_to_cpus(self, part: int) -> None:
        """Pin each part to its own cores: Linux tends to wake a process on the core of the process that woke it."""
        if self.parts <= len(self._cpus):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, self._cpus[part :: self.parts])

    def _fork_worker(self, part: int) -> None:
        """Fork a worker for a part. Ctrl-C and SIGTERM reach this process only, which then ends the workers."""
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        parent_end, worker_end = Pipe()
        try:
            with warnings.catch_warnings():
                # Python warns of locks that other threads may hold. The worker uses none of PyTorch's or DuckDB's.
                warnings.simplefilter("ignore", DeprecationWarning)
                process = os.fork()
            if process == 0:
                self._run_worker(part, worker_end, parent_end)
            self._connections[part] = parent_end
            self._processes.append(process)
        finally:
            worker_end.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)

    def _run_worker(self, part: int, connection: Connection, parent_end: Connection) -> None:
        """The loop of a worker, until the other end is closed. It never returns."""
        code = 1
        try:
            for number in STOPPING:
                signal.signal(number, signal.SIG_IGN)
            gc.freeze()  # objects of the parent process, such as folders, must not be finalized here
            self._pin_to_cpus(part)
            for inherited in (parent_end, *self._connections.values()):
                inherited.close()
            while True:
                self._answer_message(part, connection)
        except (EOFError, OSError):
            code = 0  # the parent process is gone or has closed the pipe
        finally:
            os._exit(code)

    def _answer_message(self, part: int, connection: Connection) -> None:
        """Answer the next message in a worker."""
        message = np.frombuffer(connection.recv_bytes())
        kind, update, fraction, batch = message[:HEADER].tolist()
        rows = torch.from_numpy(message[HEADER:].astype(np.int64))
        with torch.no_grad():
            torch._foreach_copy_(self._trained, self._weights)
        if kind == STEP:
            bits = self._backward(rows, self._stream(part, int(update)), fraction, int(batch))
            torch._foreach_copy_(self._gradients[part], _gradients_of(self._trained))
        else:
            bits = self._bits(rows, INPUTS[int(kind)])
        connection.send_bytes(np.array([bits]).tobytes())

    def _send(
        self, connection: Connection, kind: int, rows: Tensor, update: int = 0, fraction: float = 0.0, batch: int = 1
    ) -> None:
        try:
            connection.send_bytes(np.concatenate([[kind, update, fraction, batch], rows.numpy()]).tobytes())
        except OSError:
            raise _worker_lost() from None

    def _receive(self, connection: Connection) -> float:
        try:
            return float(np.frombuffer(connection.recv_bytes())[0])
        except (EOFError, OSError):
            raise _worker_lost() from None


def _worker_lost() -> TrainingError:
    return TrainingError(
        "a process that trains has ended unexpectedly, perhaps because memory ran out; OMP_NUM_THREADS=1 trains in one "
        "process, and --resume continues from the last checkpoint"
    )


def _gradients_of(parameters: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of the parameters, zero where there are none."""
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _shared_like(parameters: Sequence[Tensor]) -> list[Tensor]:
    """Tensors like ``parameters`` in memory that forked processes share.

    The memory has no name in the file system, because containers limit /dev/shm.
    """
    sizes = [parameter.numel() for parameter in parameters]
    flat = torch.frombuffer(mmap.mmap(-1, max(1, 4 * sum(sizes))), dtype=torch.float32)
    return [part.view_as(parameter) for part, parameter in zip(torch.split(flat, sizes), parameters, strict=True)]
