"""A private PostgreSQL server in a temporary directory, which stops when this process ends."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from countless.errors import MissingExtraError, ServerError

if TYPE_CHECKING:
    import psycopg

INSTALLED = Path("/usr/lib/postgresql")  # Debian's directory, with one folder for each version
UNPRIVILEGED = ("postgres", "nobody")  # PostgreSQL does not run as root
START_SECONDS = 60.0  # timeout of the server's start
SUPERUSER = "countless"
REMEDY = "install one with: apt-get install postgresql"

# A shell watches the server. Its standard input is a pipe from this process, which is closed at the latest when this
# process ends. Then the shell stops the server and removes its directory. If the server ends by itself, the shell
# prints the last line of its log and ends too.
WATCH = """
cd "$1"
exec 3<&0
"$2/initdb" --pgdata=data --username="$3" --auth=trust --encoding=UTF8 --lc-collate=C --lc-ctype="$4" \
    --no-sync --no-instructions --no-locale >log 2>&1 </dev/null
if [ $? -eq 0 ]; then
    "$2/postgres" -D data -k "$1" -h '' -F -c full_page_writes=off -c synchronous_commit=off -c autovacuum=off \
        -c wal_level=minimal -c max_wal_senders=0 -c max_connections=10 -c max_wal_size=4GB -c timezone=UTC \
        -c max_parallel_workers_per_gather=0 -c maintenance_work_mem=256MB >>log 2>&1 </dev/null 3<&- &
    server=$!
    (read -r _; while kill -QUIT $server; do sleep 0.1; done) <&3 &  # again: it ignores signals while it starts
    watch=$!
    wait $server
    kill $watch 2>/dev/null
fi
tail -n 1 log
cd /
rm -rf "$1"
"""


class PrivatePostgresServer:
    """A PostgreSQL server that only this user can reach: it has a socket in its own directory, and no port.

    Strings compare byte by byte, as in DuckDB. All its data is removed when it stops.
    """

    def __init__(self) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtraError("asking PostgreSQL needs its driver: pip install 'countless[postgres]'") from None
        self._errors: type[Exception] = psycopg.OperationalError
        binaries, user, ctype = find_binaries(), _unprivileged(), _ctype()
        # As root in /tmp, since the directory that TMPDIR names may be closed to the other user.
        self.directory = Path(tempfile.mkdtemp(prefix="countless-pg-", dir=None if user is None else "/tmp"))
        if user is not None:
            os.chown(self.directory, user.pw_uid, user.pw_gid)
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", WATCH, "sh", str(self.directory), str(binaries), SUPERUSER, ctype],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_MESSAGES": "C"},
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
            start_new_session=True,  # a Ctrl-C in the terminal is for this process only
        )
        self._stop = weakref.finalize(self, _stop, self._process)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def connect(self) -> psycopg.Connection:
        """A connection on which every statement is its own transaction."""
        import psycopg

        return psycopg.connect(
            host=str(self.directory),
            port=5432,
            user=SUPERUSER,
            dbname="postgres",
            autocommit=True,
            prepare_threshold=None,
        )

    @property
    def url(self) -> str:
        """The server's address, for other processes of the same user."""
        return f"postgresql://{SUPERUSER}@/postgres?host={quote(str(self.directory), safe='')}&port=5432"

    def close(self) -> None:
        """Stop the server and remove its directory. It may be called twice."""
        self._stop()

    def __enter__(self) -> PrivatePostgresServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self) -> None:
        """Wait until the server answers."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self._process.poll() is not None:
                assert self._process.stdout is not None
                log_line = self._process.stdout.read().decode(errors="replace").strip()
                raise ServerError(f"PostgreSQL did not start ({log_line or 'it said nothing'}); {REMEDY}")
            try:
                self.connect().close()
                return
            except self._errors:
                if time.monotonic() > deadline:
                    raise ServerError(
                        f"PostgreSQL did not start within {START_SECONDS:.0f} seconds; {REMEDY}"
                    ) from None
                time.sleep(0.05)


def find_binaries() -> Path:
    """The directory with ``initdb`` and ``postgres``: Debian's newest version, or else the one on the PATH."""
    candidates = sorted(INSTALLED.glob("*/bin"), key=_version, reverse=True)
    config = shutil.which("pg_config")
    if config is not None:
        pg_config_output = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        candidates.append(Path(pg_config_output.stdout.strip()))
    initdb = shutil.which("initdb")
    if initdb is not None:
        candidates.append(Path(initdb).resolve().parent)
    for directory in candidates:
        if all(os.access(directory / name, os.X_OK) for name in ("initdb", "postgres")):
            return directory
    raise ServerError(f"there is no PostgreSQL server on this machine: {REMEDY}")


def _version(directory: Path) -> float:
    try:
        return float(directory.parent.name)
    except ValueError:
        return 0.0


def _unprivileged() -> pwd.struct_passwd | None:
    """The user that runs the server; None for the current user."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServerError(f"PostgreSQL does not run as root, and there is no user {UNPRIVILEGED[0]}; {REMEDY}")


def _ctype() -> str:
    """A locale with the upper and lower case of all letters, if there is one; else C."""
    command = shutil.which("locale")
    if command is None:
        return "C"
    locales = subprocess.run([command, "-a"], capture_output=True, text=True, check=False).stdout.split()
    return next((name for name in locales if name.lower() in ("c.utf8", "c.utf-8")), "C")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe that the shell watches, and wait for its cleanup."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()
