"""The web application of the service: its routes and handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Body, FastAPI, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from countless._version import __version__
from countless.errors import CountlessError
from countless.serve import answers
from countless.serve.api import body_errors as bodies
from countless.serve.api import replies, requests
from countless.serve.api.access_log import AccessLog
from countless.serve.api.client_limits import ClientLimits
from countless.serve.api.errors import RefusalError, error_body
from countless.serve.api.guards import FAILURE, Application, Guarded, Instrumented
from countless.serve.api.request_record import RECORD
from countless.serve.page_files import INDEX, PageFile, page_files
from countless.serve.pieces import pieces as tell_pieces
from countless.serve.plain_json import to_json
from countless.serve.prometheus import CONTENT_TYPE
from countless.serve.service import JSON, VERSION_HEADER, Service, ServiceOptions

EXPOSED = ["Retry-After", "X-Cache", VERSION_HEADER, "X-Request-Id"]  # headers that pages of other origins may read
NO_TELEMETRY: TelemetryConfig = {  # whatever the environment says: questions may be confidential
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
REFUSALS: dict[int, str] = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The request's Host is not this machine.",
    404: "There is no such model, or it has no table to count in.",
    408: "The answer, or the request itself, took too long.",
    413: "The body is too large.",
    415: "The Content-Type is not JSON.",
    422: "The body has a wrong field, or the question cannot be answered.",
    429: "Too many requests are waiting, or this client has sent too many.",
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": replies.Refused, "description": text} for status, text in REFUSALS.items()
}
NOT_READY = {"model": replies.Refused, "description": "The service is stopping, or no thread is left."}
WITHOUT_BODY = (401, 403, 408, 429)  # refusals of any request, also of one without a body


def make_app(service: Service, options: ServiceOptions) -> Application:
    """The application inside its middleware."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.close()

    app = FastAPI(
        title="Countless",
        summary="Questions about tables, answered from models of them.",
        description="If the service was started with a token, paths below /v1/ need Authorization: Bearer TOKEN.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        telemetry=NO_TELEMETRY,
    )
    app.add_exception_handler(CountlessError, _unanswerable)
    app.add_exception_handler(RefusalError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _unknown)
    app.add_exception_handler(Exception, _failed)
    _add_health(app, service)
    _add_metrics(app, service)
    app.include_router(_versioned(service, options.token is not None))
    _add_page(app, page_files())
    _document(app)
    per_client = ClientLimits(options.client_rate, options.client_burst, options.client_concurrent)
    guarded: Application = Guarded(app, options, per_client)
    if options.cors:
        guarded = CORSMiddleware(
            guarded,
            allow_origins=options.cors,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-Id"],
            expose_headers=EXPOSED,
        )
    log = AccessLog(options.log_format) if options.access_log else None
    return Instrumented(guarded, service.models, service.metrics, options.proxies, log)


def _document(app: FastAPI) -> None:
    """Make the OpenAPI document, without the 422 that FastAPI adds to every path parameter: a name is any text."""
    document = app.openapi()
    for path in document["paths"].values():
        path.get("get", {"responses": {}})["responses"].pop("422", None)
    for unused in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(unused, None)


def _add_health(app: FastAPI, service: Service) -> None:
    def health() -> dict[str, Any]:
        stuck = service.stuck
        return {
            "status": "degraded" if stuck else "ok",
            "stuck": stuck,
            "models": len(service.models),
            "version": __version__,
        }

    @app.get("/healthz", response_model=replies.Health)
    async def alive() -> dict[str, Any]:
        """Whether the service is there."""
        return health()

    @app.get("/readyz", response_model=replies.Health, responses={503: NOT_READY})
    async def ready() -> dict[str, Any]:
        """Whether questions should be sent to it."""
        service.require_ready()
        return health()


def _add_metrics(app: FastAPI, service: Service) -> None:
    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(service.metrics.text(service.models, service.load), headers={"Content-Type": CONTENT_TYPE})


def _versioned(service: Service, guarded: bool) -> APIRouter:
    """The routes that need the token, if there is one: the guards check it, and the document says so."""
    scheme = HTTPBearer(auto_error=False, scheme_name="token", description="The token of --token.")
    router = APIRouter(prefix="/v1", dependencies=[Security(scheme)] if guarded else [])
    _add_model_routes(router, service)
    _add_questions(router, service)
    return router


def _add_model_routes(router: APIRouter, service: Service) -> None:
    refusals: dict[int | str, dict[str, Any]] = {status: RESPONSES[status] for status in WITHOUT_BODY}

    @router.get("/models", response_model=replies.Models, responses=refusals)
    async def models() -> dict[str, Any]:
        """Every model that is served."""
        return {"models": [served.line for served in service.models.values()]}

    @router.get("/models/{name}", response_model=replies.Model, responses={**refusals, 404: RESPONSES[404]})
    async def model(name: str) -> Response:
        """A model in full: its columns, its training, and how its error bars were made."""
        return service.properties(name)


def _body(kind: type[requests.RequestBody]) -> Any:
    """The body of a question, with its examples in the document."""
    examples = kind.examples()
    return Body(
        openapi_examples={f"example {number}": {"value": example} for number, example in enumerate(examples, 1)}
    )


Estimate = Annotated[requests.EstimateRequest, _body(requests.EstimateRequest)]
Distribution = Annotated[requests.DistributionRequest, _body(requests.DistributionRequest)]
Pieces = Annotated[requests.PiecesRequest, _body(requests.PiecesRequest)]
Query = Annotated[requests.QueryRequest, _body(requests.QueryRequest)]
Sample = Annotated[requests.SampleRequest, _body(requests.SampleRequest)]
Check = Annotated[requests.CheckRequest, _body(requests.CheckRequest)]


def _add_questions(router: APIRouter, service: Service) -> None:
    @router.post("/models/{name}/estimate", response_model=replies.Estimates, responses=RESPONSES)
    async def estimate(request: Request, name: str, body: Estimate) -> Response:
        """How many rows match a clause, or each of several."""
        return await service.ask(request, name, answers.estimate, body)

    @router.post("/models/{name}/distribution", response_model=replies.Distributions, responses=RESPONSES)
    async def distribution(request: Request, name: str, body: Distribution) -> Response:
        """Which values columns have among the rows of a condition, and how many rows each."""
        return await service.ask(request, name, answers.distribution, body)

    @router.post("/models/{name}/pieces", response_model=replies.PiecesReply, responses=RESPONSES)
    async def pieces(request: Request, name: str, body: Pieces) -> Response:
        """The most frequent beginnings and endings of a column's strings among the rows of a condition."""
        return await service.ask(request, name, tell_pieces, body)

    @router.post("/models/{name}/query", response_model=replies.Result, responses=RESPONSES)
    async def query(request: Request, name: str, body: Query) -> Response:
        """The result of a SELECT with aggregates."""
        return await service.ask(request, name, answers.query, body)

    @router.post("/models/{name}/sample", response_model=replies.Sampled, responses=RESPONSES)
    async def sample(request: Request, name: str, body: Sample) -> Response:
        """Rows that the model would write."""
        return await service.ask(request, name, answers.sample, body)

    @router.post("/models/{name}/check", response_model=replies.Checked, responses=RESPONSES)
    async def check(request: Request, name: str, body: Check) -> Response:
        """How many rows of the table match, exactly."""
        return await service.ask(request, name, answers.check, body)


def _add_page(app: FastAPI, files: Mapping[str, PageFile]) -> None:
    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return Response(files[INDEX].content, media_type=files[INDEX].media_type)

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in files:
            raise HTTPException(404)
        return Response(files[name].content, media_type=files[name].media_type)


def _problem(request: Request, status: int, error: CountlessError | RefusalError) -> Response:
    content = error_body(error)
    request.scope[RECORD].error = content["kind"]
    headers = error.headers if isinstance(error, RefusalError) else {}
    return Response(to_json({"error": content}), status, media_type=JSON, headers=headers)


async def _unanswerable(request: Request, error: Exception) -> Response:
    assert isinstance(error, CountlessError)
    return _problem(request, 422, error)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusalError)
    return _problem(request, error.status, error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    question = request.url.path.rpartition("/")[2]
    refusal = bodies.refusal(question, request.headers.get("content-type"), error.body, error.errors())
    return _problem(request, refusal.status, refusal)


async def _failed(request: Request, error: Exception) -> Response:
    return _problem(request, 500, FAILURE)


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allowed = dict(error.headers or {})
    if allowed.get("Allow") == "GET":
        allowed["Allow"] = "GET, HEAD"  # the guards turn HEAD into GET
    words = {
        400: bodies.unreadable(error.__cause__),
        404: f"there is nothing at {request.url.path}: /openapi.json lists what can be asked",
        405: f"{request.url.path} is asked with {allowed.get('Allow', 'another method').replace(', ', ' or ')} only",
    }
    kind = {404: "NotFoundError", 405: "MethodError"}.get(error.status_code, "RequestError")
    message = words.get(error.status_code, str(error.detail))
    response = _problem(request, error.status_code, RefusalError(error.status_code, kind, message))
    response.headers.update(allowed)
    return response
