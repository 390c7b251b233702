"""The text that a start prints once the service is up."""

from __future__ import annotations

from console.programs.supervisor import services
from console.settings.config import Config
from console.settings.home import derive_mail_token, read_or_make_secret


def banner(config: Config) -> str:
    """Returns the text with all addresses and folders."""
    first = config.gateway.kafka_port
    last = first + config.gateway.kafka_ports - 1
    rows = [
        ("Console", config.web.public_url),
        ("REST", f"{config.web.public_url}/api/v1/"),
        ("Kafka", f"127.0.0.1:{first}–{last}, each cluster has its own (SASL_PLAINTEXT)"),
        (
            "Kafka, TLS",
            f"*.{config.gateway.domain}:{config.gateway.tls_port} (SASL_SSL,"
            f" ca {config.gateway.folder / 'ca.pem'})",
        ),
        ("Data", str(config.home)),
        ("Logs", str(config.home / "log")),
    ]
    if config.mail.backend == "folder":
        token = derive_mail_token(config.secret_key or read_or_make_secret(config.secret_key_file))
        rows.append(("Mail", f"{config.web.public_url}/mail#{token}"))
        rows.append(("Mail, files", str(config.mail.folder)))
    if services.embeds_stripe(config):
        rows.append(("Stripe", f"{services.stripe_address(config)} (a fake: no money moves)"))
    body = "\n".join(f"  {name:<11} {value}" for name, value in rows)
    return f"\nFreshet is up.\n\n{body}\n\nCtrl-C stops all of it.\n"
