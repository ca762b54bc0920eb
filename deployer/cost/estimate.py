"""The expected monthly cost of a lake on AWS, line by line. The functions are pure."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from deployer.compute.clusters import most_workers
from deployer.compute.emr.flow import idle_minutes, shape_of
from deployer.compute.iam.jobs import CORES, LOG_DAYS, MEMORY, worker_gigabytes
from deployer.compute.jobs.code import REMOTE_KINDS
from deployer.compute.schedules.alarms import hours_without_success
from deployer.compute.schedules.schedules import default_cluster
from deployer.cost.assumptions import Assumptions
from deployer.cost.prices import PriceList, amount, read_prices, unit_of
from deployer.specs.model import Cluster, InstanceSpec, Lake, TableSpec
from deployer.specs.values.schedules import firing_times
from deployer.state.backends.dynamodb.table import table_name

GB = 1024**3  #: bytes in a GB of AWS
MONTH = 365.25 / 12  #: days in a month
_HOURS = MONTH * 24  #: hours in a month
_YEARS = 4  #: a period with one leap day
_BEGIN = dt.datetime(2025, 1, 1, tzinfo=dt.UTC) - dt.timedelta(minutes=1)
LEAST_BUDGET = 25  #: USD
_BUDGET_TIMES, _BUDGET_STEP = 2, 5


@dataclass(frozen=True, slots=True)
class StoredData:
    """A table of the lake and the bytes of its files; None where they are unknown."""

    spec: TableSpec
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Holding:
    """The resources that cost money: the instance as declared, its tables, and the bytes of its state's table (None:
    unknown).

    `managed` names the AWS resources that the stack declares: all, table or none.
    """

    instance: InstanceSpec
    tables: tuple[StoredData, ...] = ()
    state_bytes: int | None = None
    managed: str = "all"


@dataclass(frozen=True, slots=True)
class CostLine:
    """A resource that costs money. `quantity` is the amount of a month; None where it is unknown. `monthly` is None
    where the quantity or the price is unknown. `price` names the price, `unsized` the tables with unknown sizes."""

    resource: str
    what: str
    quantity: float | None
    price: str
    monthly: float | None
    unit_price: float | None = None  #: the average over all tiers
    unsized: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        return unit_of(self.price)

    @property
    def name(self) -> str:
        return f"{self.what} of {self.resource}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """All lines of an estimate. `region` is None where no region is known; then all prices are unknown."""

    lines: tuple[CostLine, ...]
    region: str | None
    prices: PriceList
    assumptions: Assumptions

    @property
    def known(self) -> float:
        """The sum of the lines whose cost is known."""
        return sum(line.monthly for line in self.lines if line.monthly is not None)

    @property
    def unknown(self) -> tuple[CostLine, ...]:
        return tuple(line for line in self.lines if line.monthly is None)


class _Use(NamedTuple):
    """A line before it is priced."""

    resource: str
    what: str
    quantity: float | None
    price: str
    unsized: tuple[str, ...] = ()


def estimate(holding: Holding, region: str | None, prices: PriceList, assumptions: Assumptions) -> Estimate:
    """Returns the costs of a month, without lines for a root on a disk."""
    uses = _uses(holding, assumptions) if holding.instance.root.startswith("s3://") else ()
    lines = tuple(_priced(use, region, prices) for use in uses)
    return Estimate(lines, region, prices, assumptions)


def _priced(use: _Use, region: str | None, prices: PriceList) -> CostLine:
    price = prices.price(region, use.price) if region else None
    monthly = amount(price, use.quantity) if price is not None and use.quantity is not None else None
    if use.quantity == 0:
        monthly = 0.0
    one = None if price is None else monthly / use.quantity if monthly and use.quantity else price[0].price
    return CostLine(use.resource, use.what, use.quantity, use.price, monthly, one, use.unsized)


def _uses(holding: Holding, assumed: Assumptions) -> Iterator[_Use]:
    instance = holding.instance
    bucket = f"bucket/{urlsplit(instance.root).netloc}"
    unsized = tuple(table.spec.address for table in holding.tables if table.bytes is None)
    stored = None if unsized else sum(table.bytes or 0 for table in holding.tables) / GB
    loads = assumed.loads_per_day * MONTH
    yield _Use(bucket, "storage", stored, "s3-storage", unsized)
    yield _Use(bucket, "requests", loads * assumed.requests_per_load / 1000, "s3-writes")
    options = instance.state.options
    if "endpoint" not in options:  # otherwise the table is not in AWS
        table = f"state-table/{options.get('table') or table_name(instance.root, instance.name)}"
        size = None if holding.state_bytes is None else holding.state_bytes / GB
        capacity = instance.aws.state_capacity if holding.managed != "none" else None
        if capacity is None:
            yield _Use(table, "writes", loads * assumed.write_units_per_load / 1e6, "dynamodb-writes")
        else:
            yield _Use(table, "read capacity", capacity[0] * _HOURS, "dynamodb-read-capacity")
            yield _Use(table, "write capacity", capacity[1] * _HOURS, "dynamodb-write-capacity")
        yield _Use(table, "storage", size, "dynamodb-storage")
        if holding.managed != "none":
            yield _Use(table, "point-in-time recovery", size, "dynamodb-recovery")
    if holding.managed == "none":
        return
    if instance.aws.kms_key == "managed":
        yield _Use(f"key/{instance.name}", "KMS key", 1.0, "kms-key")
    scheduled = _scheduled(instance, [table.spec for table in holding.tables])
    for cluster in instance.clusters:
        runs = assumed.runs_per_day * MONTH + sum(map(runs_a_month, scheduled.get(cluster.name, ())))
        if cluster.kind == "emr-serverless":
            yield from _serverless(cluster, runs, assumed)
        elif cluster.kind == "emr":
            yield from _on_ec2(cluster, runs, assumed, cluster.name in scheduled)
    if scheduled:
        starts = sum(runs_a_month(schedule) for each in scheduled.values() for schedule in each)
        yield _Use(f"schedules/{instance.name}", "invocations", starts / 1e6, "scheduler")
    if any(cluster.kind in REMOTE_KINDS for cluster in instance.clusters):
        # for throttled commits, for services that were not started, and for missing successes
        schedules = [schedule for each in scheduled.values() for schedule in each]
        alarms = 1 + (1 + (hours_without_success(schedules) is not None) if scheduled else 0)
        yield _Use(f"alarms/{instance.name}", "alarms", float(alarms), "alarm")


def _serverless(cluster: Cluster, runs: float, assumed: Assumptions) -> Iterator[_Use]:
    """Yields the workers and a driver for the time of a run. Workers that are kept ready cost money until the
    application stops."""
    options: Mapping[str, Any] = cluster.options
    processors = options.get("architecture", "arm64")
    workers = min(assumed.workers, most_workers(options)) + 1
    ready = options["initial_workers"] + 1 if "initial_workers" in options else 0
    hours = _hours(runs, assumed.run_minutes) * max(workers - ready, 0)
    hours += _hours(runs, assumed.run_minutes + options.get("idle_minutes", 15)) * ready
    cores = options.get("cores", CORES)
    gigabytes = worker_gigabytes(cores, options.get("memory", MEMORY))
    application = f"application/{cluster.name}"
    yield _Use(application, "vCPUs", hours * cores, f"emr-serverless-vcpu-{processors}")
    yield _Use(application, "memory", hours * gigabytes, f"emr-serverless-memory-{processors}")
    logged = runs * assumed.log_mb_per_run / 1024
    yield _Use(f"logs/{cluster.name}", "ingestion", logged, "logs-ingested")
    yield _Use(f"logs/{cluster.name}", "storage", logged * LOG_DAYS / MONTH, "logs-kept")


def _on_ec2(cluster: Cluster, runs: float, assumed: Assumptions, scheduled: bool) -> Iterator[_Use]:
    """Yields the declared instances for as long as the cluster exists, without those that scaling adds."""
    options: Mapping[str, Any] = cluster.options
    idle = idle_minutes(options, scheduled)
    if options.get("lifetime", "run") == "run":
        hours = _hours(runs, assumed.run_minutes)
    else:
        hours = _HOURS if idle is None else _hours(runs, assumed.run_minutes + idle)
    # a live cluster from an older release, whose specs could omit the types
    if "instance_type" not in options and not options.get("fleets"):
        yield _Use(f"cluster/{cluster.name}", "instances", None, "ec2/not declared")
        return
    shape = shape_of(options)
    numbers: Counter[str] = Counter()
    for types, number in ((shape.primary, 1), (shape.core, shape.on_demand)):
        numbers["|".join(types)] += number
    for kind, number in numbers.items():
        if number:
            yield _Use(f"cluster/{cluster.name}", f"{kind} instances", hours * number, f"ec2/{kind}")
    if shape.spot:  # the price of spot instances changes every minute, and no list has it
        kind = "|".join(shape.core)
        yield _Use(f"cluster/{cluster.name}", f"{kind} spot instances", hours * shape.spot, f"ec2/{kind} spot")
        numbers[kind] += shape.spot
    for kind, number in numbers.items():
        yield _Use(f"cluster/{cluster.name}", f"EMR on {kind}", hours * number, f"emr/{kind}")


def _hours(runs: float, minutes: float) -> float:
    """Returns the hours of a month in which a resource exists that each run needs for the given minutes."""
    return min(runs * minutes / 60, _HOURS)


def _scheduled(instance: InstanceSpec, tables: Iterable[TableSpec]) -> dict[str, list[str]]:
    """Returns the schedules of table services, by cluster on AWS."""
    remote = {cluster.name for cluster in instance.clusters if cluster.kind in REMOTE_KINDS}
    default = default_cluster(instance.clusters)
    found: dict[str, list[str]] = {}
    for service in (service for table in tables for service in table.services):
        if service.trigger is not None and service.trigger.schedule is not None:
            cluster = service.cluster or (default.name if default else None)
            if cluster in remote:
                found.setdefault(cluster, []).append(service.trigger.schedule)
    return found


def monthly_budget(lake: Lake, region: str) -> int:
    """Returns the monthly budget of a lake on AWS in USD; 0 for no budget.

    It is the declared budget. Without one, it is twice the expected cost of the declaration, in steps of 5 and at least
    `LEAST_BUDGET`; that cost uses this release's prices and assumptions, and tables without rows.
    """
    declared = lake.instance.aws.budget
    if declared is not None:
        return declared
    holding = Holding(lake.instance, tuple(StoredData(table, 0) for table in lake.tables), 0)
    expected = estimate(holding, region, read_prices(None), Assumptions())
    return max(LEAST_BUDGET, math.ceil(_BUDGET_TIMES * expected.known / _BUDGET_STEP) * _BUDGET_STEP)


@cache
def runs_a_month(expression: str) -> float:
    """Returns the average number of firings of a cron schedule in a month, over four years.

    A schedule fires equally often on each day on which it fires.
    """
    first = next(firing_times(expression, "UTC", _BEGIN))
    day = first.replace(hour=0, minute=0) - dt.timedelta(minutes=1)
    tomorrow = day + dt.timedelta(days=1, minutes=1)
    a_day = sum(1 for _ in takewhile(lambda time: time < tomorrow, firing_times(expression, "UTC", day)))
    minute, hour = str(first.minute), str(first.hour)
    once = " ".join([minute, hour, *expression.split()[2:]])
    end = _BEGIN.replace(year=_BEGIN.year + _YEARS)
    days = sum(1 for _ in takewhile(lambda time: time <= end, firing_times(once, "UTC", _BEGIN)))
    return a_day * days / (12 * _YEARS)
