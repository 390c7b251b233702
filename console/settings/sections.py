"""The sections of the settings file: names, types, defaults and what each setting means.

The defaults are those of one machine with embedded servers. `config._check_production` names what
production must set itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from brokers.metadata_records import BROKERS_PER_CLUSTER_MAX
from brokers.settings.fields import setting

LOG_FORMATS = ("text", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")
COLLECTORS = ("none", "transfer", "stripe")


@dataclass(frozen=True, slots=True)
class Web:
    """The REST interface and the console."""

    bind: str = setting(
        "127.0.0.1",
        "Address that the web server listens on; in local mode one of the loopback.",
        empty=True,
    )
    port: int = setting(8080, "Port that the web server listens on.")
    public_url: str = setting("http://localhost:{port}", "Address that people and mails use.")
    allowed_hosts: tuple[str, ...] = setting(
        ("localhost", "127.0.0.1", "[::1]"), "Host names that requests may ask for.", empty=True
    )
    behind_proxy: bool = setting(
        False, "A proxy in front sets X-Forwarded-Proto and X-Forwarded-For, and removes others'."
    )
    connections_max: int = setting(
        10_000,
        "Connections that a web process keeps open; fewer where it may not open so many files. "
        "Beyond it the address with most of them loses the newest.",
        minimum=1,
    )
    session_days: int = setting(14, "Days after which one must sign in again.")
    waiting_requests_max: int = setting(
        200,
        "Requests of all organizations that may wait for clusters or operations at one time. "
        "Beyond it each organization has one.",
    )
    watches_max: int = setting(
        1000,
        "Visible pages of the console of all organizations that are notified of changes. Beyond it "
        "each organization has one.",
    )


@dataclass(frozen=True, slots=True)
class Database:
    """PostgreSQL. Two roles: one owns the tables and migrates, the other serves."""

    host: str = setting("{home}/postgres", "Host, or the folder of a Unix socket.", empty=True)
    port: int = setting(5432, "Port (for a socket, the number in its name).")
    name: str = setting("freshet", "Name of the database.")
    owner_user: str = setting("freshet_owner", "Role that owns the tables; only migrations use it.")
    owner_password: str = setting("", "Its password.", secret=True)
    app_user: str = setting(
        "freshet_app", "Role of web and workers: neither an owner nor exempt from row security."
    )
    app_password: str = setting("", "Its password.", secret=True)
    sslmode: str = setting("prefer", "libpq's sslmode.", empty=True)
    connect_timeout_s: int = setting(5, "Seconds to wait for a connection.")
    pool_max: int = setting(
        0, "Connections that a web process keeps and shares at most; 0: one for each request."
    )


@dataclass(frozen=True, slots=True)
class Queue:
    """What carries Celery's tasks."""

    url: str = setting(
        "redis+socket://{home}/redis/redis.sock",
        "Redis (`redis://`, `rediss://`, `redis+socket://`) or RabbitMQ (`amqp://`, `amqps://`).",
    )
    visibility_timeout_s: int = setting(
        120, "Seconds after which Redis gives a task of a lost worker to another."
    )
    tasks_per_organization: int = setting(
        1,
        "Tasks about clusters of one organization that workers do at one time; fewer than workers "
        "have processes, so that nobody takes all of them.",
        minimum=1,
    )
    counters_url: str = setting(
        "",
        "Redis that counts API requests and outbound calls for all processes that serve or make "
        "them. Empty: that of `queue.url`; where this is none, each process counts for itself.",
    )


@dataclass(frozen=True, slots=True)
class Outbound:
    """Calls to addresses that organizations chose, such as webhooks."""

    refused_networks: tuple[str, ...] = setting(
        (),
        "Networks that no call goes to besides those that are not public, such as public addresses "
        "of this installation: `198.51.100.0/24`.",
    )
    calls: int = setting(32, "Calls that a worker makes at one time.", minimum=1, maximum=1000)
    calls_per_organization: int = setting(
        4,
        "Calls of one organization at one time, in all workers; more are refused at once.",
        minimum=1,
    )


@dataclass(frozen=True, slots=True)
class Mail:
    """Where e-mails go."""

    backend: str = setting("folder", "`folder` (one .eml a mail) or `smtp`.")
    folder: Path = setting(Path("{home}/mail"), "Folder of the `folder` backend.")
    host: str = setting("", "SMTP server.")
    port: int = setting(587, "Its port.")
    user: str = setting("", "User name at the SMTP server.")
    password: str = setting("", "Password at the SMTP server.", secret=True)
    starttls: bool = setting(True, "Encrypt by STARTTLS.")
    sender: str = setting("Freshet <no-reply@localhost>", "The From of every mail.")


@dataclass(frozen=True, slots=True)
class Cell:
    """The cell that this control plane places clusters in."""

    id: str = setting("local", "Name of the cell.")
    region: str = setting("local", "Region that the cell belongs to.")
    metadata: str = setting(
        "sqlite://{home}/cell/metadata.sqlite",
        "The metadata store: `sqlite://<path>`, or `etcd://` or `etcds://` with its members.",
    )
    dfs: Path = setting(Path("{home}/cell/dfs"), "Mount of the shared file system.")
    bucket: str = setting(
        "file://{home}/cell/bucket",
        "The object store: `file://<path>`, or `s3://<bucket>/<prefix>` with `?endpoint=`, "
        "`&region=` and `&key_file=`.",
    )
    secret: Path = setting(
        Path("{home}/cell/secret"),
        "File (mode 0600) with the cell's 32 random bytes in hex: control plane, keeper, gateway.",
    )
    keeper: Path = setting(Path("{home}/keeper"), "Folder of the keeper's and the driver's state.")


@dataclass(frozen=True, slots=True)
class Usage:
    """Where usage files are, and how they are rolled up."""

    location: str = setting(
        "file://{home}/cell/usage",
        "The usage store, with files of every agent: `file://<path>` or `s3://`, as `cell.bucket`.",
    )
    rollups: str = setting(
        "file://{home}/cell/rollups",
        "What roll-ups write, in a folder for each run: `file://<path>` or `s3://`, as "
        "`cell.bucket`.",
    )
    progress: Path = setting(
        Path("{home}/cell/metering"), "How far each cluster is metered, for the cell's agents."
    )
    agent_folder: Path = setting(Path("{home}/agent"), "Folder of the agent's settings file.")
    agent_period_s: int = setting(15, "Seconds between two passes of the agent over all clusters.")
    joined_file_mib: int = setting(
        128, "Usage files of past days are joined into files of about so many MiB.", minimum=1
    )
    window_minutes: int = setting(
        5, "Storage is measured in windows of so many minutes, a whole part of an hour."
    )
    spark_master: str = setting(
        "local[*]",
        "Where Spark runs the jobs: `local[*]`, `spark://<host>:<port>` or `k8s://<url>`. All "
        "machines of a cluster must reach `usage.location` and `usage.rollups`.",
    )
    spark_settings: tuple[str, ...] = setting(
        (),
        "Further settings of Spark, as `NAME=VALUE`, such as `spark.driver.host` or "
        "`spark.executor.memory`.",
    )
    spark_jars: str = setting(
        "",
        "Folder of the jars that Spark needs for `s3://` (`python -m spark_usage.jars <folder>`); "
        "the jobs ship them to a cluster. Empty: they are among its own.",
    )


@dataclass(frozen=True, slots=True)
class Billing:
    """Who sends the invoices, where they are kept, and how they are paid."""

    documents: str = setting(
        "file://{home}/billing",
        "The store of invoices as PDF and of the numbers that were used: `file://<path>` or "
        "`s3://`, as `cell.bucket`. Never restore it.",
    )
    invoice_prefix: str = setting("FR", "What the numbers of invoices begin with.", empty=True)
    seller_name: str = setting("Freshet", "Legal name of who sends the invoices.")
    seller_address: tuple[str, ...] = setting(
        (), "The seller's address, line by line. Production and a VAT id require it."
    )
    seller_country: str = setting(
        "", "The seller's country (ISO 3166-1 alpha-2). Production and a VAT id require it."
    )
    seller_vat_id: str = setting("", "The seller's VAT id; empty: not registered for VAT.")
    seller_registration: str = setting("", "The seller's entry in a trade register.")
    seller_email: str = setting("", "Address for questions about an invoice.")
    vat_rates: tuple[str, ...] = setting(
        (),
        "Standard rates in percent by country, such as `DE=19`, where the seller owes VAT. With a "
        "VAT id they must name the seller's country.",
    )
    collector: str = setting(
        "none",
        "How issued invoices are paid. `none`: nobody collects them; `transfer`: by bank transfer, "
        "as an operator enters it; `stripe`: by card, charged by Stripe.",
        choices=COLLECTORS,
    )
    payment_terms_days: int = setting(
        14, "Days from the issue of an invoice until it is due.", minimum=0, maximum=365
    )
    bank_account: tuple[str, ...] = setting(
        (),
        "The account that customers pay to, line by line as invoices print it, such as the owner "
        "and the IBAN. The collector `transfer` requires it.",
    )
    stripe_api_key: str = setting(
        "",
        "Secret key of the Stripe account (`sk_` or `rk_`). Production requires it with the "
        "collector `stripe`.",
        secret=True,
    )
    stripe_webhook_secret: str = setting(
        "",
        "Secret that Stripe signs its webhooks with (`whsec_`); several with commas between them "
        "while it is changed: what is signed with any of them is taken. Production requires it "
        "with the collector `stripe`.",
        secret=True,
    )
    stripe_api_base: str = setting(
        "", "Address of Stripe's API, where it is not Stripe's own; https in production."
    )
    card_minimum_minor: int = setting(
        50,
        "The least that a card is charged, in minor units. A smaller invoice is charged together "
        "with the next one.",
        minimum=0,
    )
    unproved_payer_limit_minor: int = setting(
        5_000,
        "What the organizations of a card may owe together before charges of it came to half of "
        "that, in minor units. At the half the card is charged in advance; at all of it produce "
        "and fetch are refused until it pays. 0: there is no limit.",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class Gateway:
    """How Kafka clients come in."""

    folder: Path = setting(Path("{home}/gateway"), "Folder of certificates and keys.")
    kafka_port: int = setting(9092, "First port of the range of plain listeners on the loopback.")
    kafka_ports: int = setting(
        4_000,
        "How many ports that range has. A cluster that is not deleted has 4 of them, or 1 and one"
        " for each broker where it has more than 3 brokers; a cluster of one broker gets a single"
        " one where the range has no 4 left. Ports of the service's own listeners are left out.",
    )
    tls_port: int = setting(9443, "Port of the TLS listener.")
    domain: str = setting("kafka.localhost", "Domain under which clusters have their names.")


@dataclass(frozen=True, slots=True)
class Log:
    """What web, workers and scheduler log, on standard error."""

    format: str = setting("text", "`text`, or `json`: one object a line.", choices=LOG_FORMATS)
    level: str = setting("info", "`debug`, `info`, `warning` or `error`.", choices=LOG_LEVELS)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where each process serves `/metrics` for Prometheus: `host:port`, or empty for nowhere.

    Port 0 takes a free one, which the process names in its log.
    """

    web: str = setting("127.0.0.1:0", "The web server; each has one of its own.", empty=True)
    worker: str = setting("127.0.0.1:0", "A worker, with all of its children.", empty=True)
    nightly: str = setting("127.0.0.1:0", "The worker of the queue `nightly`.", empty=True)
    outbound: str = setting("127.0.0.1:0", "The worker of the queue `outbound`.", empty=True)
    scheduler: str = setting(
        "127.0.0.1:0", "The scheduler, which also counts what waits in the database.", empty=True
    )
    keeper: str = setting("127.0.0.1:0", "The keeper, where `make up` starts it.", empty=True)
    gateway: str = setting("127.0.0.1:0", "The gateway, where `make up` starts it.", empty=True)
    agent: str = setting(
        "127.0.0.1:0", "The metering agent, where `make up` starts it.", empty=True
    )


@dataclass(frozen=True, slots=True)
class Console:
    """The console's pages."""

    folder: Path = setting(
        Path(__file__).parents[2] / "frontend" / "dist", "Folder of the built console."
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """Published limits. An organization's own can be raised; these are where it begins."""

    api_requests_per_second: int = setting(
        100, "API requests of an organization in a second, counted over ten seconds."
    )
    anonymous_requests_per_second: int = setting(
        20, "API requests from one address in a second that no organization makes."
    )
    waiting_requests: int = setting(
        32, "API requests of an organization that wait for clusters or operations at one time."
    )
    page_requests_per_second: int = setting(
        100,
        "Requests to a web process for pages, files and health from one address a second, in the "
        "long run.",
        minimum=1,
    )
    web_connections_per_address: int = setting(
        1000,
        "Connections from one address to a web process. Behind a proxy, which has all of them, it "
        "does not hold.",
        minimum=1,
    )
    waiting_requests_per_address: int = setting(
        64, "API requests from one address that wait for clusters or operations at one time."
    )
    password_checks_per_address: int = setting(
        4, "Passwords from one address that are checked or set at one time."
    )
    downloads: int = setting(
        2, "Downloads of an organization (audit log, archive) that are made at one time."
    )
    live_tails: int = setting(20, "Live tails of an organization that are open at one time.")
    watches: int = setting(
        100, "Visible pages of the console of an organization that are notified of changes."
    )
    watches_per_address: int = setting(
        200, "Visible pages of the console at one address that are notified of changes."
    )
    signups_per_address: int = setting(10, "Sign-ups from one address in an hour.")
    signins_failed_per_address: int = setting(20, "Failed sign-ins from one address in an hour.")
    password_resets_per_address: int = setting(
        20, "Mails to set a new password that one address may ask for in an hour."
    )
    api_keys: int = setting(100, "API keys of an organization that are not revoked.")
    projects: int = setting(50, "Projects of an organization.")
    members: int = setting(500, "Members of an organization, with those who are invited.")
    invitations_per_day: int = setting(100, "Invitations that an organization makes in 24 hours.")
    service_accounts: int = setting(100, "Service accounts of an organization.")
    role_bindings: int = setting(2000, "Roles in projects, of an organization.")
    clusters: int = setting(20, "Clusters of an organization.")
    deleted_clusters: int = setting(
        100, "Deleted clusters of an organization that can be restored, when it creates one."
    )
    brokers: int = setting(
        BROKERS_PER_CLUSTER_MAX,
        "Brokers of a cluster when it is awake.",
        minimum=1,
        maximum=BROKERS_PER_CLUSTER_MAX,
    )
    credentials: int = setting(200, "Kafka credentials of a cluster.")
    budgets: int = setting(20, "Budgets of an organization.")
    alerts: int = setting(100, "Alerts of an organization.")
    acls: int = setting(2000, "Entries of a cluster's access control list.")
    topics: int = setting(2000, "Topics of a cluster.")
    partitions: int = setting(4000, "Partitions of a cluster.")
    deleted_topics: int = setting(
        20000, "Topics of a cluster that are gone for good and may still be billed (40 days)."
    )
    quotas: int = setting(1000, "Users, client ids and addresses of a cluster that have quotas.")
    groups: int = setting(2000, "Consumer groups of a cluster.")
    group_members: int = setting(1000, "Members of one consumer group.")
    group_bytes: int = setting(
        64 * 1024 * 1024,
        "Bytes of memory that all consumer groups of a cluster take, with members and offsets.",
    )
    unbilled_bytes_per_second: int = setting(
        4 * 1024 * 1024,
        "Bytes a second of a cluster's Kafka requests and answers that are not billed: all but "
        "batches that are stored, and records that are handed out as a whole.",
    )
    changes_per_second: int = setting(
        10,
        "Changes a second (topics, configs, ACLs, users, quotas, groups) by a cluster's Kafka "
        "clients; those of 200 seconds may come at once. Each is in the audit log.",
    )
    usage_pairs_per_minute: int = setting(
        2000,
        "Pairs of a topic and a credential whose usage is counted apart in a minute of a cluster. "
        "That of further pairs is counted together for each topic.",
    )
    connections: int = setting(1000, "Clients' connections of a cluster at one time.")
    wakes_per_minute: int = setting(10, "Times that a cluster may be woken in a minute.")
