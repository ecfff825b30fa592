"""target.json and monitor.jsonl."""

from loadstone.results.documents.base import Amount, Ns, Number, Struct, Words


class Setting(Struct, frozen=True):
    """A setting of a server."""

    name: Words = None
    value: Words = None
    source: Words = None


class Durability(Struct, frozen=True):
    """A setting on which it depends whether data survive a crash."""

    setting: str
    value: Words = None
    durable: bool | None = None
    why: str | None = None


class Target(Struct, frozen=True):
    """target.json."""

    id: str | None = None
    label: str | None = None
    engine: str | None = None
    url: str | None = None
    local: bool | None = None
    version: str | None = None
    version_text: str | None = None
    build: str | None = None
    embedded: bool | None = None
    in_process: bool | None = None
    encrypted: bool | None = None
    authentication: str | None = None
    memory_limit_bytes: Amount | None = None
    settings: list[Setting] | None = None
    durability: list[Durability] | None = None


class Host(Struct, frozen=True):
    """The machine in a sample."""

    cores: Amount | None = None


class Engine(Struct, frozen=True):
    """What the server said in a sample."""

    counters: dict[str, Number | None] | None = None
    gauges: dict[str, Number | None] | None = None
    waits: dict[str, Number] | None = None


class Gpu(Struct, frozen=True):
    """A GPU in a sample."""

    utilisation: Amount | None = None
    memory_used_bytes: Amount | None = None
    energy_j: Amount | None = None
    power_w: Amount | None = None


class Sample(Struct, frozen=True):
    """A line of monitor.jsonl; other counters in it are read only where they are numbers."""

    t_ns: Ns
    host: Host | None = None
    engine: Engine | None = None
    gpu: list[Gpu] | None = None
