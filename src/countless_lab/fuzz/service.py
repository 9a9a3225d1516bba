"""Send hostile requests to a service. After each of them it must answer an ordinary question as before."""

from __future__ import annotations

import functools
import http.client
import importlib.util
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from countless_lab.contests.service_process import HOST, ServiceProcess, running_service
from countless_lab.fuzz.campaign import Campaign, Outcome, unexpected
from countless_lab.fuzz.child import Limits
from countless_lab.fuzz.hostile_requests import MODEL, QUESTIONS, HostileRequest, hostile_request
from countless_lab.fuzz.small_models import make_models

REQUESTS = 200  # of each case
WARM_UP = 50  # requests after which the memory may no longer grow
GROWTH = 60 * 1024**2  # bytes that are allowed for cached answers and the allocator
TIMEOUT = 2.0  # seconds, of the service
SLOWEST = 60.0  # seconds that any answer may take on a busy machine
KIND = "mixed"  # of the small models: numbers, times and text, and some evidence rows
CANARY = "age > 20 AND city = 'Oslo'"
EXAMPLES = 4  # requests that schemathesis makes for each operation
MAX_DEFECTS = 5


def attack_service(models: Path, seed: int, folder: str, requests: int = REQUESTS) -> Outcome:
    """A case: send hostile requests to a service of a small model, and an ordinary question after each."""
    arguments = [
        *(f"{MODEL}={models / f'{KIND}.countless'}", "--table", f"{MODEL}={models / 'small.parquet'}"),
        *("--timeout", f"{TIMEOUT:g}s"),
    ]
    rng, defects, answered = np.random.default_rng(seed), [], 0
    with running_service(arguments, Path(folder) / "service.log") as service:
        expected, memory = canary(service.port, 0), 0
        for number in range(requests):
            request = hostile_request(rng)
            request_defects = [*check_request(service.port, request), *_check_canary(service, number + 1, expected)]
            defects += [f"request {number}, {request.about}: {defect}" for defect in request_defects]
            answered += 1
            if number + 1 == min(WARM_UP, requests):
                memory = service.memory
            if len(defects) >= MAX_DEFECTS or service.process.poll() is not None:
                break
        if service.process.poll() is None:
            defects += check_document(service, seed)
            defects += _check_end(service, memory)
    if service.process.returncode != 0:
        defects.append(f"the service ended with exit code {service.process.returncode}")
    return Outcome("answered", "", tuple(defects[:MAX_DEFECTS]), answered)


def check_request(port: int, request: HostileRequest) -> list[str]:
    """Defects of the answer to a request."""
    try:
        answer = _send(port, request)
    except TimeoutError:
        return [f"no answer within {SLOWEST:g} s"]
    except OSError as error:  # the service may close the connection of invalid HTTP and of large bodies
        return [f"no connection: {error}"] if isinstance(error, ConnectionRefusedError) else []
    if request.vanishes:
        return []
    replies = list(_replies(answer))
    if not replies and request.is_http:
        return ["it hung up without an answer"]
    defects = [f"status {status}" for status, _ in replies if status >= 500][:1]
    if request.is_http:
        defects += [problem for status, body in replies if status >= 400 for problem in _check_error(body)][:1]
    return defects


def _replies(answer: bytes) -> Iterator[tuple[int, bytes]]:
    """The status and the body of each answer on a connection."""
    while head := re.match(rb"HTTP/1\.[01] (\d{3}).*?\r\n\r\n", answer, re.DOTALL):
        length = re.search(rb"content-length: (\d+)", head[0], re.IGNORECASE)
        end = head.end() + int(length[1]) if length else len(answer)
        yield int(head[1]), answer[head.end() : end]
        answer = answer[end:]


def _check_error(body: bytes) -> list[str]:
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return [f"a refusal without a message: {body[:200]!r}"]
    return [] if message and "\n" not in message else [f"a strange message: {message!r}"]


def canary(port: int, number: int) -> tuple[int, float | None]:
    """The status and the rows of an ordinary question, whose spaces depend on ``number`` so that no cache answers."""
    connection = http.client.HTTPConnection(HOST, port, timeout=SLOWEST)
    body = json.dumps({"where": CANARY.replace(" = ", f" ={' ' * (number % 1_000)} ")})
    try:
        connection.request("POST", f"/v1/models/{MODEL}/estimate", body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        record = json.loads(reply.read())
    finally:
        connection.close()
    return reply.status, record["estimates"][0]["rows"] if reply.status == http.HTTPStatus.OK else None


def _check_canary(service: ServiceProcess, number: int, expected: tuple[int, float | None]) -> Iterator[str]:
    """Defects of the answer to the ordinary question; threads get some time to cancel the hostile one."""
    end, answer = time.monotonic() + SLOWEST, None
    while time.monotonic() < end and service.process.poll() is None:
        try:
            answer = canary(service.port, number)
        except (OSError, http.client.HTTPException, ValueError) as error:
            yield f"the canary had no answer: {unexpected(error)}"
            return
        if answer[0] not in (408, 429):
            break
    if answer != expected:
        yield f"the canary was answered {answer} and not {expected}"


def check_document(service: ServiceProcess, seed: int) -> list[str]:
    """Defects that schemathesis finds with the service's OpenAPI document, if it is installed."""
    if importlib.util.find_spec("schemathesis") is None:
        return []
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from hypothesis import seed as seeded
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    schema = schemathesis.openapi.from_url(f"http://{HOST}:{service.port}/openapi.json")
    defects = []
    for question in QUESTIONS:
        for mode in GenerationMode:
            operation = schema[f"/v1/models/{{name}}/{question}"]["POST"]

            def ask(case: Any) -> None:
                case.path_parameters["name"] = MODEL
                case.call_and_validate(excluded_checks=[positive_data_acceptance], timeout=SLOWEST)

            options = settings(
                max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
            )
            run: Callable[[], None] = seeded(seed)(
                options(given(case=operation.as_strategy(generation_mode=mode))(ask))
            )
            try:
                run()
            except BaseException as error:  # failures come in groups
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
                defects.append(f"{question} is not answered as documented: {str(error)[:1_000]}")
    return defects


def _check_end(service: ServiceProcess, memory: int) -> Iterator[str]:
    """Defects at the end: threads, requests or memory left over from the requests."""
    end = time.monotonic() + SLOWEST
    while (metrics := service.metrics())["countless_questions"] and time.monotonic() < end:
        time.sleep(0.1)
    for name, limit in (
        ("countless_questions", 0),
        ("countless_threads_stuck", 0),
        ("countless_requests_in_flight", 1),
    ):
        if metrics[name] > limit:
            yield f"{name} is {metrics[name]:g} when nobody asks"
    own_threads = 2  # the main thread, and the one that looks at files
    if metrics["process_threads"] > metrics["countless_threads"] + own_threads:
        yield f"there are {metrics['process_threads']:g} threads"
    if service.memory > memory + GROWTH:
        yield f"the memory grew from {memory / 1e6:.0f} to {service.memory / 1e6:.0f} MB"
    if service.tracebacks():
        yield f"there are {service.tracebacks()} tracebacks in {service.log.name}"


def _send(port: int, request: HostileRequest) -> bytes:
    with socket.create_connection((HOST, port), timeout=SLOWEST) as connection:
        for piece in request.pieces:
            connection.sendall(piece)
            time.sleep(request.pause)
        answer = b""
        while not request.vanishes and (part := connection.recv(1 << 16)):
            answer += part
    return answer


def service_campaign(models: Path, requests: int = REQUESTS) -> Campaign:
    """The campaign; the model and its table are made in ``models`` if they are not there."""
    make_models(models, [KIND])
    return Campaign(
        "fuzz service",
        "service",
        "request",
        functools.partial(attack_service, models, requests=requests),
        limits=Limits(seconds=1_800, memory=None),
        preload=("countless_lab.fuzz.service",),
    )
