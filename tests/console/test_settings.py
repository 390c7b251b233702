"""Settings from file, environment and defaults; what production requires; Django's own check."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from brokers.settings.errors import SettingsError
from brokers.settings.fields import settings_of
from console.settings.assemble import django_settings
from console.settings.config import Config, load_config
from console.settings.home import default_home, read_or_make_secret

ROOT = Path(__file__).parents[2]
PRODUCTION = """
mode = "production"
secret_key = "a long text of the operator's own, that nobody else knows, of 50 and more"

[web]
public_url = "https://console.example.org"
allowed_hosts = ["console.example.org"]
behind_proxy = true

[database]
host = "db.example.org"
app_password = "one"
owner_password = "other"
sslmode = "verify-full"

[queue]
url = "amqps://freshet@queue.example.org/freshet"

[mail]
backend = "smtp"
host = "mail.example.org"
sender = "Freshet <no-reply@example.org>"

[billing]
seller_address = ["Street 1", "10115 Berlin"]
seller_country = "DE"
"""


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def load(home, text=None, **environ):
    if text is not None:
        home.mkdir(parents=True, exist_ok=True)
        (home / "settings.toml").write_text(text)
    return load_config({"FRESHET_HOME": str(home), **environ})


def test_an_empty_home_is_one_machine_on_stand_ins(home):
    config = load(home)
    assert config.local
    assert config.web.port == 8080
    assert config.web.public_url == "http://localhost:8080"
    assert config.database.host == str(home / "postgres")
    assert config.queue.url == f"redis+socket://{home}/redis/redis.sock"
    assert config.mail.folder == home / "mail"
    assert config.cell.secret == home / "cell" / "secret"
    assert not home.exists()


def test_the_environment_wins_over_the_file_over_the_default(home):
    text = "[web]\nport = 8081\n[gateway]\nkafka_port = 9000\n"
    config = load(home, text, FRESHET_HTTP_PORT="8082", FRESHET_WEB_ALLOWED_HOSTS="a, b")
    assert (config.web.port, config.gateway.kafka_port) == (8082, 9000)
    assert config.web.public_url == "http://localhost:8082"
    assert config.web.allowed_hosts == ("a", "b")


def test_a_file_elsewhere_is_read(home, tmp_path):
    file = tmp_path / "other.toml"
    file.write_text('[cell]\nregion = "{home}"\n')
    assert load(home, FRESHET_SETTINGS=str(file)).cell.region == str(home)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("[web]\nprot = 1\n", "web.prot"),
        ("[wep]\n", "wep"),
        ("web = 1\n", "web"),
        ('[web]\nport = "x"\n', "web.port"),
        ("[web]\nport = true\n", "web.port"),
        ("[web]\nbehind_proxy = 1\n", "web.behind_proxy"),
        ("[web]\nallowed_hosts = 1\n", "web.allowed_hosts"),
        ("[web]\nallowed_hosts = [1]\n", "web.allowed_hosts"),
        ("[web]\nbind = 1\n", "web.bind"),
        ("[limits]\nbrokers = 17\n", "limits.brokers is 17, want a whole number from 1 to 16"),
        ('mode = "test"\n', "mode"),
        ("[web\n", "settings.toml"),
    ],
)
def test_what_is_wrong_is_named(home, text, pattern):
    with pytest.raises(SettingsError, match=pattern):
        load(home, text)


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_local_mode_listens_on_the_loopback(home, bind):
    assert load(home, FRESHET_WEB_BIND=bind).web.bind == bind


@pytest.mark.parametrize(
    "bind",
    ["0.0.0.0", "::", "192.0.2.1", "", "example.org", "localhost.x"],  # noqa: S104 (refused)
)
def test_local_mode_refuses_to_listen_where_others_reach_it(home, bind):
    with pytest.raises(SettingsError, match=r"^FRESHET_WEB_BIND: web\.bind is .* loopback"):
        load(home, FRESHET_WEB_BIND=bind)


def test_an_error_names_the_variable_or_the_file_that_says_it(home):
    with pytest.raises(SettingsError, match=r"^FRESHET_HTTP_PORT: web\.port is 'x', want a whole"):
        load(home, "[web]\nport = 8081\n", FRESHET_HTTP_PORT="x")
    with pytest.raises(SettingsError, match=r"/settings\.toml: web\.port is 'y', want a whole"):
        load(home, "[web]\nport = 'y'\n", FRESHET_WEB_BIND="x")
    with pytest.raises(SettingsError, match=r"^FRESHET_MODE: mode is 'test', want one of local, "):
        load(home, None, FRESHET_MODE="test")


def test_a_file_may_write_numbers_and_lists_as_the_environment_does(home):
    config = load(home, "[web]\nport = '81'\nbehind_proxy = 'true'\nallowed_hosts = 'a, b'\n")
    assert (config.web.port, config.web.behind_proxy) == (81, True)
    assert config.web.allowed_hosts == ("a", "b")


def test_a_password_is_in_no_error(home):
    with pytest.raises(SettingsError) as error:
        load(home, "[database]\napp_password = 12345\n")
    assert "database.app_password is (hidden), want a text" in str(error.value)
    assert "12345" not in str(error.value)


def test_an_empty_variable_counts_where_the_setting_may_be_empty(home):
    config = load(home, FRESHET_METRICS_WEB="", FRESHET_MODE="", FRESHET_HTTP_PORT="")
    assert (config.metrics.web, config.mode, config.web.port) == ("", "local", 8080)
    with pytest.raises(SettingsError, match=r"^FRESHET_CELL_DFS: cell\.dfs is '', want a path"):
        load(home, FRESHET_CELL_DFS="")


def test_a_file_that_is_asked_for_must_be_there(home):
    with pytest.raises(SettingsError, match=r"absent\.toml"):
        load(home, FRESHET_SETTINGS=str(home / "absent.toml"))


def test_production_names_all_that_is_missing(home):
    with pytest.raises(SettingsError) as error:
        load(home, 'mode = "production"\n')
    for name in (
        *("secret_key", "web.public_url", "mail.backend", "database.app_password"),
        *("billing.seller_address", "billing.seller_country"),
    ):
        assert name in str(error.value)


SELLER = {
    "FRESHET_BILLING_SELLER_VAT_ID": "DE111111111",
    "FRESHET_BILLING_SELLER_COUNTRY": "de",
    "FRESHET_BILLING_SELLER_ADDRESS": "Street 1,Berlin",
    "FRESHET_BILLING_VAT_RATES": "DE=19,FR=20",
}


@pytest.mark.parametrize(
    ("setting", "text", "name"),
    [
        ("SELLER_COUNTRY", "", "billing.seller_country must be set"),
        ("SELLER_COUNTRY", "Germany", "billing.seller_country is 'Germany'"),
        ("SELLER_ADDRESS", "", "billing.seller_address must be set"),
        ("VAT_RATES", "FR=20", "billing.vat_rates must name .* DE=19"),
        ("VAT_RATES", "DE:19", "billing.vat_rates: 'DE:19' is not like DE=19"),
        ("VAT_RATES", "DE=nineteen", "billing.vat_rates: 'DE=nineteen' is not like DE=19"),
        ("INVOICE_PREFIX", "a/b", "billing.invoice_prefix is 'a/b'"),
        ("INVOICE_PREFIX", "x" * 17, "billing.invoice_prefix is 'xxx"),
    ],
)
def test_a_start_names_what_no_invoice_could_be_issued_with(home, setting, text, name):
    assert load(home, **SELLER).billing.seller_country == "de"
    with pytest.raises(SettingsError, match=rf"^(FRESHET_BILLING_{setting}: )?{name}"):
        load(home, **{**SELLER, f"FRESHET_BILLING_{setting}": text})


@pytest.mark.parametrize(
    ("setting", "text", "said"),
    [
        ("COLLECTOR", "cash", "billing.collector is 'cash', want one of none, transfer, stripe"),
        ("COLLECTOR", "transfer", 'billing.bank_account must be set where .* "transfer"'),
        ("PAYMENT_TERMS_DAYS", "-1", "billing.payment_terms_days is '-1'"),
        ("PAYMENT_TERMS_DAYS", "366", "billing.payment_terms_days is '366'"),
        ("CARD_MINIMUM_MINOR", "-1", "billing.card_minimum_minor is '-1'"),
        ("STRIPE_API_KEY", "pk_test_1", r"billing.stripe_api_key is \(hidden\), want"),
        ("STRIPE_WEBHOOK_SECRET", "secret", r"billing.stripe_webhook_secret is \(hidden\), want"),
        ("STRIPE_API_BASE", "localhost:12", "billing.stripe_api_base is 'localhost:12'"),
    ],
)
def test_a_start_names_what_nothing_could_be_collected_with(home, setting, text, said):
    with pytest.raises(SettingsError, match=rf"^(FRESHET_BILLING_{setting}: )?{said}"):
        load(home, **{f"FRESHET_BILLING_{setting}": text})


def test_transfers_need_an_account_and_stripe_needs_keys_in_production_only(home):
    given = {"FRESHET_BILLING_COLLECTOR": "transfer", "FRESHET_BILLING_BANK_ACCOUNT": "IBAN DE1"}
    assert load(home, **given).billing.bank_account == ("IBAN DE1",)
    by_stripe = {"FRESHET_BILLING_COLLECTOR": "stripe"}
    assert load(home, **by_stripe).billing.stripe_api_key == ""
    with pytest.raises(SettingsError) as error:
        load(home, PRODUCTION, **by_stripe, FRESHET_BILLING_STRIPE_API_BASE="http://localhost:1")
    for name in ("stripe_api_key", "stripe_webhook_secret", "stripe_api_base"):
        assert f"billing.{name}" in str(error.value)


def test_every_setting_is_documented():
    for section in settings_of(Config).values():
        if section.is_section:
            assert section.kind.__doc__
            for name, setting in settings_of(section.kind).items():
                assert setting.rules.doc.endswith("."), f"{section.name}.{name}"


def test_production_serves_over_https_only(home):
    settings = django_settings(load(home, PRODUCTION))
    assert settings["SESSION_COOKIE_SECURE"]
    assert settings["CSRF_COOKIE_SECURE"]
    assert settings["SECURE_SSL_REDIRECT"]
    assert settings["SECURE_PROXY_SSL_HEADER"] == ("HTTP_X_FORWARDED_PROTO", "https")
    assert settings["EMAIL_BACKEND"].endswith("mail.SmtpBackend")
    assert not settings["DEBUG"]


def test_local_mode_serves_without_tls(home):
    settings = django_settings(load(home))
    assert not settings["SESSION_COOKIE_SECURE"]
    assert not settings["SECURE_SSL_REDIRECT"]
    assert not settings["DEBUG"]


def test_the_serving_connection_is_not_the_owners(home):
    databases = django_settings(load(home))["DATABASES"]
    assert databases["default"]["USER"] == "freshet_app"
    assert databases["owner"]["USER"] == "freshet_owner"
    assert databases["default"]["NAME"] == databases["owner"]["NAME"]


def test_the_secret_of_local_mode_is_made_once_and_for_its_owner_only(home):
    file = home / "secret_key"
    first = read_or_make_secret(file)
    assert len(first) >= 50
    assert read_or_make_secret(file) == first
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in home.iterdir()] == ["secret_key"]
    assert django_settings(load(home))["SECRET_KEY"] == first


def test_the_data_folder_follows_the_platform(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_home({"XDG_DATA_HOME": "/data"}) == Path("/data/freshet")
    assert default_home({}).name == "freshet"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "Application Support" in str(default_home({}))


def test_importing_the_configuration_reads_nothing(home):
    """The keeper must not need a secret key, nor Django."""
    script = (
        "import sys, console.settings.config\n"
        "assert 'django' not in sys.modules\n"
        "assert 'console.settings.assemble' not in sys.modules\n"
    )
    environ = {**os.environ, "FRESHET_HOME": str(home), "FRESHET_SETTINGS": "absent.toml"}
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, env=environ)
    assert not home.exists()


def manage(home, *arguments):
    environ = {**os.environ, "FRESHET_HOME": str(home), "PYTHONPATH": str(ROOT)}
    environ.pop("DJANGO_SETTINGS_MODULE", None)
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_djangos_check_of_a_deployment_finds_nothing(home):
    load(home, PRODUCTION)
    result = manage(home, "check", "--deploy", "--fail-level", "DEBUG")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "no issues (0 silenced)" in result.stdout


def test_djangos_check_can_find_something(home):
    load(home, PRODUCTION.replace("https://", "http://").replace("production", "local"))
    result = manage(home, "check", "--deploy", "--fail-level", "WARNING")
    assert result.returncode != 0
    assert "SECURE_SSL_REDIRECT" in result.stderr


def test_every_migration_is_written(home):
    result = manage(home, "makemigrations", "--check", "--dry-run")
    assert "No changes detected" in result.stdout, result.stdout + result.stderr
