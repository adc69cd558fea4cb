"""The JSON documents of a recording as models, with the keys that readers use (docs/recording-format.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool

from loadprint.reading.documents import (
    FORMAT_VERSION,
    EachNatural,
    EachScalar,
    Integer,
    JsonObject,
    Listed,
    Named,
    Natural,
    Scalar,
)


class RoleOfRun(JsonObject):
    """A host of a run: its name in the inventory, and the role's CPUs as given."""

    host: str = ""
    cpus: Any = None


class PlacedMemory(JsonObject):
    """Where a role's memory was, in kB by memory node, and the nodes that it was bound to."""

    nodes: EachNatural = {}
    bound: str = ""


class PlacedRole(JsonObject):
    """What a check found of a role's threads: how often one was allowed, or ran, on another CPU."""

    outside_allowed: Natural = 0
    outside_ran: Natural = 0
    memory: PlacedMemory = PlacedMemory()


class PlacementChecks(JsonObject):
    """How server and load were separated, and whether their threads stayed there."""

    connection: str = ""
    how: str = ""
    reason: str = ""
    separated: StrictBool | None = None
    verified: StrictBool | None = None
    server: PlacedRole = PlacedRole()
    load: PlacedRole = PlacedRole()


class Drive(JsonObject):
    """The maximum that the rate of an open loop is a fraction of, and its side."""

    maximum: Natural | None = None
    slowest: str = ""


class ImportedFrom(JsonObject):
    """The source of a recording that was imported."""

    kind: str = ""


class RunMeta(JsonObject):
    """run.json."""

    format_version: Integer = FORMAT_VERSION
    id: str = ""
    side: str = ""
    workload: str = ""
    operation: str = ""
    status: str = "unknown"
    reason: str = ""
    generator: str = ""
    campaign: str = ""
    execution: str = ""
    profile: str = ""
    block: Integer | None = None
    repeat: Integer | None = None
    seed: Integer | None = None
    started_realtime_ns: Integer | None = None
    roles: Named[RoleOfRun] = {}
    placement: PlacementChecks = PlacementChecks()
    drive: Drive = Drive()
    parameters: dict[str, Any] = {}
    versions: dict[str, Any] = {}
    imported: ImportedFrom = ImportedFrom()


class TransactionType(JsonObject):
    """Number of transactions of one type, and their latencies."""

    count: Natural | None = None
    latency_ms: EachNatural = {}
    wait_ms_mean: Natural | None = None


class SocketCounts(JsonObject):
    """Sockets of the load's host."""

    tcp_time_wait: Natural | None = None


class SocketsAround(JsonObject):
    """Sockets after the generator ended."""

    after: SocketCounts = SocketCounts()


class LoadDetails(JsonObject):
    """What some generators report."""

    nopm: Natural | None = None
    tpm: Natural | None = None
    sockets: SocketsAround = SocketsAround()


class TlsOfLoad(JsonObject):
    """Encryption of the connections."""

    mode: str | None = None


class LoadResult(JsonObject):
    """result.json: what the load was, and its totals of the measure phase."""

    workload: str = ""
    generator: str | None = None
    generator_version: Scalar | None = None
    operation: str = ""
    mode: str | None = None
    protocol: str | None = None
    connections: str = "thread"
    compression: Scalar | None = None
    options: dict[str, Any] = {}
    events: Natural | None = None
    queries: Natural | None = None
    reads: Natural | None = None
    writes: Natural | None = None
    others: Natural | None = None
    commits: Natural | None = None
    rows: Natural | None = None
    errors: Natural | None = None
    retries: Natural | None = None
    reconnects: Natural | None = None
    seconds: Natural | None = None
    threads: Natural | None = None
    workers: Natural | None = None
    rate: Natural | None = None
    achieved_rate: Natural | None = None
    backlog_max: Natural | None = None
    backlog_end: Natural | None = None
    rate_held: StrictBool | None = None
    latency_ms: EachNatural = {}
    transactions: Named[TransactionType] = {}
    errors_by_code: EachNatural = {}
    tls: TlsOfLoad = TlsOfLoad()
    details: LoadDetails = LoadDetails()


class ServerRecord(JsonObject):
    """server.json: SHOW GLOBAL VARIABLES, and SHOW GLOBAL STATUS at three times."""

    version: str = ""
    version_comment: str = ""
    variables: EachScalar = {}
    status_warmup: EachScalar = {}
    status_begin: EachScalar = {}
    status_end: EachScalar = {}


class CpuOfHost(JsonObject):
    """A CPU; `siblings` is the kernel's list of the hardware threads of its core."""

    cpu: Natural | None = None
    siblings: Scalar | None = None


class NumaNode(JsonObject):
    """A memory node and its CPUs."""

    cpus: Any = None


class CpusOfHost(JsonObject):
    """The CPUs of a host."""

    model: str = ""
    sockets: Natural | None = None
    online: Natural | None = None
    numa: Listed[NumaNode] | None = None
    list: Listed[CpuOfHost] = ()


class Kernel(JsonObject):
    """The kernel of a host."""

    release: str = ""


class Virtualisation(JsonObject):
    """What a virtual machine knows of itself."""

    guest: StrictBool | None = None
    product: str = ""
    instance_type: str = ""


class BlockDevice(JsonObject):
    """A disk, or a device on others."""

    name: str = ""
    nvme: StrictBool | None = None
    rotational: StrictBool | None = None
    scheduler: Scalar | None = None
    write_cache: Scalar | None = None
    iostats: StrictBool | None = None


class StoragePlace(JsonObject):
    """The file system of a role's files (`data`, `redo`, `binlog`, `journal`), and its whole disks."""

    role: str = ""
    path: str = ""
    filesystem: str | None = None
    options: str | None = None
    disks: Listed[str] = ()


class InterruptVector(JsonObject):
    """An interrupt, and the CPUs that serve it."""

    name: str = ""
    cpus: Any = None


class InterruptsOfDevice(JsonObject):
    """The interrupts of a disk or a network interface."""

    device: str = ""
    irqs: Listed[InterruptVector] = ()


class ControlGroupLimits(JsonObject):
    """Limits of the server's control group."""

    cpu_quota_us: Natural | None = None
    cpu_period_us: Natural | None = None
    memory_bytes: Natural | None = None


class RecorderOnHost(JsonObject):
    """The recorder itself."""

    cpus: Any = None


def _release(given: Any) -> Any:
    """An imported recording has the release alone."""
    return {"release": given} if isinstance(given, str) else given


class Fingerprint(JsonObject):
    """fingerprint.json: a host."""

    host: str = ""
    boot_id: str | None = None
    kernel: Annotated[Kernel, BeforeValidator(_release)] = Kernel()
    cmdline: str | None = None
    user_hz: Natural | None = None
    page_size: Natural | None = None
    cpu_accounting: dict[str, Any] = {}
    virtualisation: Virtualisation = Virtualisation()
    clocksources: str | None = None
    governor: Any = None
    cpus: CpusOfHost = CpusOfHost()
    memory: EachNatural = {}
    sysctl: EachScalar = {}
    limits: ControlGroupLimits = ControlGroupLimits()
    block_devices: Listed[BlockDevice] = ()
    storage: Listed[StoragePlace] = ()
    root: StoragePlace = StoragePlace()
    interrupts: Listed[InterruptsOfDevice] = ()
    cpusets: dict[str, Any] = {}
    recorder: RecorderOnHost = RecorderOnHost()

    def place(self, role: str) -> StoragePlace | None:
        """The file system of a role's files; None if it was not recorded."""
        return next((disk for disk in self.storage if disk.role == role), None)


class RecordedFile(JsonObject):
    """Size and checksum of a file."""

    bytes: Natural | None = None
    crc32c: str = ""


class Manifest(JsonObject):
    """manifest.json."""

    files: Named[RecordedFile]


class PromisedWarmth(JsonObject):
    """The state of the server that a campaign promises after the warm-up."""

    redo_capacities_written: Natural | None = None
    free_buffer_pages: Natural | None = None


class DataSet(JsonObject):
    """A data set of a campaign."""

    size: Natural | None = None


class PlannedServer(JsonObject):
    """The server of a campaign or a side; other keys are its settings."""

    source: str | None = None
    profile: str | None = None
    options: Named[Scalar] = {}


class PlannedCampaign(JsonObject):
    """The campaign of an execution."""

    name: str = ""
    title: str = ""
    mode: str = ""
    design: str = ""
    precision: Annotated[float, Field(gt=0)] | None = None
    scale: Listed[str] = ()
    variables: dict[str, Any] = {}
    server: PlannedServer = PlannedServer()
    warm: PromisedWarmth = PromisedWarmth()
    data: Named[DataSet] = {}


class PlannedSide(JsonObject):
    """A side of an execution; `data_bytes` is the size of its data set."""

    label: str = ""
    workload: str = ""
    operation: str = ""
    generator: str = "native"
    data: str = ""
    of: str = ""
    threads: Natural | None = None
    fraction: Natural | None = None
    saturated: str = ""
    cell: Named[Scalar] = {}
    options: dict[str, Any] = {}
    server: PlannedServer = PlannedServer()
    data_bytes: Natural | None = None


def _directory(name: str) -> str:
    """A name inside the execution. Raises ValueError."""
    if name in {"", ".", ".."} or Path(name).name != name:
        raise ValueError("is not the name of a directory")
    return name


class PlannedRun(JsonObject):
    """A run of an execution: its directory and its side."""

    id: Annotated[str, AfterValidator(_directory)]
    side: str = ""


class ObtainedServer(JsonObject):
    """The server that an execution found or built."""

    flavour: str = ""
    version: str = ""


class ServerOfExecution(JsonObject):
    """A server of an execution."""

    obtained: ObtainedServer = ObtainedServer()


class ExecutionPlan(JsonObject):
    """execution.json."""

    campaign: PlannedCampaign = PlannedCampaign()
    hash: str = ""
    seed: Integer | None = None
    reference: str = ""
    warm_promise: str = ""
    servers: Named[ServerOfExecution] = {}
    sides: Named[PlannedSide] = {}
    runs: Listed[PlannedRun] = ()
    started: str = ""
    ended: str = ""
    spent_s: Natural | None = None
    ended_by: str = ""

    def side(self, name: str) -> PlannedSide:
        """A side with the size of its data set; empty if it is not planned."""
        planned = self.sides.get(name, PlannedSide())
        size = self.campaign.data.get(planned.data, DataSet()).size
        return planned if size is None else planned.model_copy(update={"data_bytes": size})


class ProbeStatus(JsonObject):
    """Whether a probe ran."""

    name: str = ""
    status: str = ""
    reason: str = ""


class ColumnMeaning(JsonObject):
    """A column or a metric of a table; `resolution`: increases are multiples of it."""

    unit: str | None = None
    kind: str = ""
    resolution: Annotated[float, Field(ge=0)] = 0.0
    bounds: Listed[Natural | None] = ()
    bits: Natural | None = None


class TableMeaning(JsonObject):
    """The JSON in the footer of a table."""

    entity: Listed[str] = ()
    interval_ns: Natural = 0
    missed: Natural = 0
    torn_bytes: Natural = 0
    ended: str = "unknown"
    probes: Listed[ProbeStatus] = ()
    columns: Named[ColumnMeaning] = {}
    metrics: Named[ColumnMeaning] = {}

    @property
    def meanings(self) -> dict[str, ColumnMeaning]:
        """Of the columns or the metrics, by name."""
        return self.columns or self.metrics
