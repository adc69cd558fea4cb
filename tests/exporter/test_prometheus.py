"""A real Prometheus scrapes through TLS with a password, and who should not get in does not."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import resource
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from ports import free_port

from .endpoints import COLLECT, fetch, running, served, serving, wait_for

PASSWORD = "right"
ALIASES = "basic_auth_users:\n  a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"  a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)


def bcrypt(cost: int) -> str:
    """The hash of the password; each step of the cost doubles the time of a check."""
    crypt = [
        "perl",
        "-e",
        "print crypt($ARGV[0], $ARGV[1])",
        PASSWORD,
        f"$2b${cost:02}$abcdefghijklmnopqrstuu",
    ]
    hashed = subprocess.run(crypt, check=True, capture_output=True, text=True).stdout
    assert len(hashed) == 60
    return hashed


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A web configuration with a separate certificate and one user."""
    place = tmp_path_factory.mktemp("web")
    certificate = [
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(place / "server.key"), "-out", str(place / "server.crt")]
    subprocess.run(["openssl", "req", *certificate, *names, *files], check=True, capture_output=True)
    hashed = bcrypt(4)
    config = place / "web.yml"
    config.write_text(
        "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n  min_version: TLS13\n"
        "http_server_config:\n  headers:\n    X-Frame-Options: deny\n"
        f"basic_auth_users:\n  prometheus: {hashed}\n"
    )
    return config


def test_prometheus_scrapes_through_tls(tmp_path: Path, web: Path) -> None:
    with serving(tmp_path / "ours", "--web-config-file", web) as url:
        assert url.startswith("https://")
        target, port = urllib.parse.urlsplit(url).netloc, free_port()
        config = tmp_path / "prometheus.yml"
        config.write_text(
            "scrape_configs:\n- job_name: loadprint\n  scrape_interval: 1s\n  scheme: https\n"
            f"  tls_config: {{ca_file: {web.parent / 'server.crt'}}}\n"
            f"  basic_auth: {{username: prometheus, password: {PASSWORD}}}\n"
            f"  static_configs: [{{targets: ['{target}']}}]\n"
        )
        data = tmp_path / "data"
        program = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={data}"]
        with running([*program, f"--web.listen-address=127.0.0.1:{port}"], tmp_path / "theirs") as process:

            def query(expression: str) -> str | None:
                assert process.poll() is None, (tmp_path / "theirs").read_text()
                asked = urllib.parse.urlencode({"query": expression})
                try:
                    answer = json.loads(fetch(f"http://127.0.0.1:{port}/api/v1/query?{asked}"))
                except (urllib.error.URLError, ConnectionError, TimeoutError):
                    return None
                result = answer["data"]["result"]
                return str(result[0]["value"][1]) if result else None

            value = wait_for("a scrape", lambda: query("up == 1") and query("node_memory_MemTotal_bytes"))
            total = next(
                line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")
            )
            assert value == str(int(total.split()[1]) * 1024)
            wait_for("a second scrape", lambda: query("increase(node_context_switches_total[1m]) > 0"))


def status(url: str, credentials: str | None, ca: Path, method: str = "GET") -> tuple[int, str | None]:
    """The status of an answer, and its header X-Frame-Options."""
    request = urllib.request.Request(url, method=method)
    if credentials:
        request.add_header("Authorization", "Basic " + base64.b64encode(credentials.encode()).decode())
    context = ssl.create_default_context(cafile=str(ca))
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return answer.status, answer.headers["X-Frame-Options"]
    except urllib.error.HTTPError as error:
        return error.code, error.headers["X-Frame-Options"]


def test_only_the_right_password_gets_in(tmp_path: Path, web: Path) -> None:
    ca = web.parent / "server.crt"
    with serving(tmp_path / "log", "--web-config-file", web, "--probes", "cpu") as url:
        for wrong in (None, "prometheus:wrong", "nobody:right", "prometheus", "prometheus:"):
            assert status(url, wrong, ca) == (401, "deny"), wrong
        for _ in range(2):
            assert status(url, f"prometheus:{PASSWORD}", ca) == (200, "deny")
        assert status(url.replace("/metrics", "/nothing"), f"prometheus:{PASSWORD}", ca)[0] == 404
        assert status(url, f"prometheus:{PASSWORD}", ca, "POST")[0] == 405
        # A file that has become unusable, or asks for less, changes nothing.
        whole = web.read_text()
        without_users = whole[: whole.index("basic_auth_users")]
        for text, expected in (
            (whole + "nonsense: 1\n", "web.yml:10: "),
            ("", "web.yml: no longer requires TLS (tls_server_config); restore the setting, or restart"),
            (without_users, "web.yml: no longer requires passwords (basic_auth_users)"),
        ):
            web.write_text(text)
            assert status(url, None, ca) == (401, "deny"), text
            assert status(url, f"prometheus:{PASSWORD}", ca) == (200, "deny"), text
            assert expected in (tmp_path / "log").read_text()
        # One that is whole again is in force again.
        web.write_text(whole.replace("prometheus:", "scraper:"))
        assert status(url, f"prometheus:{PASSWORD}", ca)[0] == 401
        assert status(url, f"scraper:{PASSWORD}", ca)[0] == 200


def is_open(client: socket.socket) -> bool:
    """True until the other side has closed it."""
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


@pytest.mark.parametrize("slow", [64, 1000])
def test_clients_that_wait_keep_no_scraper_waiting(tmp_path: Path, slow: int) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limit[1]), limit[1]))
    with serving(tmp_path / "log", "--probes", "cpu") as url:
        address = urllib.parse.urlsplit(url)
        # Where the machine stalls for the ten seconds that a request may take, all are closed: again then.
        for _ in range(5):
            with contextlib.ExitStack() as clients:
                waiting = []
                for _ in range(slow):
                    client = socket.create_connection((address.hostname, address.port or 0), timeout=60)
                    clients.enter_context(client)
                    client.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
                    waiting.append(client)
                assert "loadprint_probe_success" in fetch(url)
                # The oldest one made room: its socket is closed at about the time of the answer. Without
                # that, the answer comes when the time of all of them is over.
                deadline = time.monotonic() + 5
                while is_open(waiting[0]) and time.monotonic() < deadline:
                    time.sleep(0.01)
                opened = [is_open(client) for client in waiting]
            if any(opened):
                assert not opened[0]
                assert all(opened[-63:])
                return
    raise AssertionError("every client was closed before the scraper had its answer")


def answer_to(url: str, sent: bytes) -> bytes:
    """All that comes back for these bytes until the server closes."""
    address = urllib.parse.urlsplit(url)
    with socket.create_connection((address.hostname, address.port or 0), timeout=120) as client:
        client.sendall(sent)
        received = b""
        # a server that does not read to the end of what was sent resets the connection after its answer
        with contextlib.suppress(ConnectionResetError):
            while part := client.recv(65536):
                received += part
        return received


def test_what_no_client_should_send(tmp_path: Path) -> None:
    with serving(tmp_path / "log", "--probes", "cpu") as url:
        assert answer_to(url, b"\x16\x03\x01 not a request\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        long = b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 10_000 + b"\r\n\r\n"
        assert answer_to(url, long).startswith(b"HTTP/1.1 431 ")
        many = b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 100 + b"\r\n"
        assert answer_to(url, many).startswith(b"HTTP/1.1 431 ")
        # A client that never ends its request is let go.
        answer_to(url, b"GET /metrics HTTP/1.1\r\nHost: a\r\n")
        closing = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        assert b"node_context_switches_total" in answer_to(url, closing)


def refused(*arguments: object) -> str:
    """An unusable command line: one line, and status 2."""
    ended = subprocess.run(
        [COLLECT, "serve", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 2, ended
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    return ended.stderr


def test_what_cannot_be_served_is_said_in_one_line(tmp_path: Path, web: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert f"{address}: address already in use" in refused("--listen", address)
    assert "127.0.0.1:9779" in refused("--listen", "9779")
    for wrong, expected in (
        ("basic_auth_users:\n  a: secret\n", "bad.yml:2: "),
        ("tls_server_config:\n  cert_file: a\n  cipher_suites: [b]\n", "bad.yml:3: "),
        ("tls_server_config:\n  client_auth_type: RequireAnyClientCert\n", "RequireAndVerifyClientCert"),
        (f"tls_server_config:\n  cert_file: {web.parent}/server.crt\n", "key_file is missing"),
        ("tls_server_config:\n  cert_file: nothing\n  key_file: nothing\n", f"{tmp_path}/nothing"),
        ("rate_limit: {}\n", "bad.yml:1: "),
        ("a: b: c\n", "bad.yml:1: "),
        ("basic_auth_users: " + "[" * 9000 + "]" * 9000, "bad.yml:1: "),
        (ALIASES, "bad.yml:2: "),
        ("#" * (1 << 20) + "\n", "larger than 1048576 bytes"),
    ):
        (tmp_path / "bad.yml").write_text(wrong)
        message = refused("--listen", "127.0.0.1:0", "--web-config-file", tmp_path / "bad.yml")
        assert expected in message, message
        assert "secret" not in message


def test_sigterm_ends_it_while_clients_are_connected(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running([COLLECT, "serve", "--listen", "127.0.0.1:0", "--probes", "cpu"], log) as process:
        url = wait_for("the endpoint", lambda: served(log))
        address = urllib.parse.urlsplit(url)
        with socket.create_connection((address.hostname, address.port or 0)) as client:
            client.sendall(b"GET /")
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0


def test_strangers_are_spoken_of(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running([COLLECT, "serve", "--listen", "0.0.0.0:0", "--probes", "cpu"], log):
        wait_for("the endpoint", lambda: served(log))
    assert "warning: other machines can read the metrics at 0.0.0.0:0" in log.read_text()


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """CPU time of a process and its threads so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_flood_of_disconnecting_clients_leaves_one_password_check(tmp_path: Path) -> None:
    """A check takes about a second: those of 100 clients would take a minute, on a thread each."""
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users:\n  prometheus: {bcrypt(14)}\n")
    log = tmp_path / "log"
    command = [COLLECT, "serve", "--listen", "127.0.0.1:0", "--probes", "cpu", "--web-config-file", config]
    with running(command, log) as process:
        address = urllib.parse.urlsplit(wait_for("the endpoint", lambda: served(log)))
        for number in range(100):
            credentials = base64.b64encode(f"prometheus:{number}".encode()).decode()
            request = f"GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {credentials}\r\n\r\n"
            with socket.create_connection((address.hostname, address.port or 0), timeout=60) as client:
                client.sendall(request.encode())
                time.sleep(0.02)  # the server reads the request before the connection ends
        threads = len(list(Path(f"/proc/{process.pid}/task").iterdir()))
        assert threads < 20
        # the check in progress ends; the others never start
        spent = [cpu_seconds(process)]
        for _ in range(20):
            time.sleep(1)
            spent.append(cpu_seconds(process))
        assert spent[-1] - spent[-6] < 1, spent
