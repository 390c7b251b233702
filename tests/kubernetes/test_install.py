"""The manifests that install Freshet: their settings, secrets, probes and budgets."""

import base64
import json
import re
import tomllib

from brokers import _core
from brokers.secrets import read_cell_secret
from console.settings.config import build_config
from metering.agent import settings as agent_settings
from provisioning.cell.drivers.kubernetes.manifests import ZONE_LABEL
from provisioning.cell.keeper import settings as keeper_settings
from provisioning.cell.keeper.kubernetes import KubernetesSettings
from provisioning.deliverables.kubernetes.make_secrets import (
    ASKED_FILES,
    ASKED_LINES,
    main,
    make_secrets,
)
from tests.kubernetes import installation
from tests.kubernetes.installation import SYSTEM, named, of_kind, pods_of

PARTS = {
    *("web", "worker", "nightly", "outbound", "scheduler", "keeper", "gateway", "agent", "migrate")
}
ALONE = {"scheduler", "nightly", "migrate"}


def words_of(manifests, part):
    """The command and arguments of a part, with environment variables replaced by their values."""
    container = pods_of(manifests)[part]["spec"]["containers"][0]
    values = dict(named(manifests, "ConfigMap", "freshet-settings")["data"])
    values |= {
        variable["name"]: variable.get("value", "0") for variable in container.get("env", [])
    }
    words = [*container["command"], *container.get("args", [])]
    return [re.sub(r"\$\((\w+)\)", lambda match: values[match[1]], word) for word in words]


def overrides_of(words):
    return [word.removeprefix("--set=") for word in words if word.startswith("--set=")]


def test_a_drain_takes_one_at_a_time_and_nobody_is_stuck(overlay):
    budgets = of_kind(overlay, "PodDisruptionBudget")
    assert set(budgets) == PARTS - ALONE
    pods = pods_of(overlay)
    for name, budget in budgets.items():
        assert budget["spec"]["maxUnavailable"] == 1
        labels = budget["spec"]["selector"]["matchLabels"].items()
        holds = [pod for pod in pods if labels <= pods[pod]["metadata"]["labels"].items()]
        assert holds == [name]


def test_only_the_keeper_has_a_token_and_nobody_reads_services_as_settings(overlay):
    for name, template in pods_of(overlay).items():
        spec = template["spec"]
        assert spec["automountServiceAccountToken"] is (name == "keeper"), name
        assert spec["enableServiceLinks"] is False, name
    for account in of_kind(overlay, "ServiceAccount").values():
        assert account["automountServiceAccountToken"] is False


def test_each_part_mounts_only_the_secrets_that_it_needs(overlay):
    mounted = {}
    for name in PARTS:
        spec = pods_of(overlay)[name]["spec"]
        secrets = [
            volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume
        ]
        secrets += [
            source["secretRef"]["name"]
            for source in spec["containers"][0].get("envFrom", [])
            if "secretRef" in source
        ]
        secrets += [
            container["valueFrom"]["secretKeyRef"]["name"]
            for container in spec["containers"][0].get("env", [])
            if "secretKeyRef" in container.get("valueFrom", {})
        ]
        mounted[name] = {re.sub(r"-[a-z0-9]{10}$", "", secret) for secret in secrets}
    cell = {"freshet-cell", "freshet-etcd"}
    control_plane = {*cell, "freshet-s3", "freshet-control-plane"}
    assert mounted == {
        "web": control_plane,
        "worker": control_plane,
        "nightly": control_plane,
        "outbound": {"freshet-outbound"},
        "scheduler": {"freshet-control-plane"},
        "migrate": {"freshet-control-plane", "freshet-database-owner"},
        "keeper": {*cell, "freshet-brokers", "freshet-s3"},
        "gateway": {*cell, "freshet-gateway-tls"},
        "agent": {"freshet-etcd", "freshet-s3"},
    }


def test_the_control_plane_understands_its_settings(overlay):
    environ = dict(named(overlay, "ConfigMap", "freshet-settings")["data"])
    secret = named(overlay, "Secret", "freshet-control-plane")
    plain = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    known = {name for name in environ if name.startswith("FRESHET_")}
    config = build_config(installation.ROOT, {}, {**environ, **plain})
    sections = {
        f"FRESHET_{section}_{name}".upper()
        for section in config.__slots__
        if hasattr(getattr(config, section), "__slots__") and section != "home"
        for name in getattr(config, section).__slots__
    }
    assert known - sections == {"FRESHET_MODE", "FRESHET_HOME"}
    service = of_kind(overlay, "Service")["gateway"]["spec"]["ports"][0]
    assert config.gateway.tls_port == service.get("nodePort", service["port"])


def test_the_keeper_understands_its_settings(overlay):
    text = named(overlay, "ConfigMap", "freshet-keeper")["data"]["keeper.toml"]
    settings = keeper_settings.parse_settings(text, overrides_of(words_of(overlay, "keeper")))
    image = pods_of(overlay)["keeper"]["spec"]["containers"][0]["image"]
    assert isinstance(settings.driver, KubernetesSettings)
    assert settings.driver.options.image == image
    assert settings.driver.options.system_namespace == SYSTEM
    assert settings.keeper.standby


def test_gateways_understand_their_settings(overlay):
    text = named(overlay, "ConfigMap", "freshet-gateway")["data"]["gateway.toml"]
    settings = _core.resolve_gateway_settings(text, overrides_of(words_of(overlay, "gateway")))
    pod = pods_of(overlay)["gateway"]["spec"]
    waits = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    drains = tomllib.loads(settings)["limits"]["drain_timeout_ms"] / 1000
    assert waits + drains < pod["terminationGracePeriodSeconds"]


def test_a_gateway_has_the_zone_that_its_pod_is_in_as_brokers_have_theirs(overlay):
    container = pods_of(overlay)["gateway"]["spec"]["containers"][0]
    assert '--set=cell.zone="$(ZONE)"' in container["args"]
    zone = next(variable for variable in container["env"] if variable["name"] == "ZONE")
    field = zone["valueFrom"]["fieldRef"]["fieldPath"]
    assert field == f"metadata.labels['{ZONE_LABEL}']"
    text = named(overlay, "ConfigMap", "freshet-gateway")["data"]["gateway.toml"]
    overrides = overrides_of(words_of(overlay, "gateway"))
    settings = tomllib.loads(_core.resolve_gateway_settings(text, overrides))
    # `words_of` stands "0" for what a pod's fields say.
    assert settings["cell"]["zone"] == "0"


def test_agents_understand_their_settings(overlay):
    text = named(overlay, "ConfigMap", "freshet-agent")["data"]["agent.toml"]
    settings = agent_settings.parse_settings(text, overrides_of(words_of(overlay, "agent")))
    assert settings.agent.agents == of_kind(overlay, "StatefulSet")["agent"]["spec"]["replicas"]


def test_every_folder_that_is_mounted_is_where_settings_say(overlays):
    overlay = overlays["production"]
    for part in PARTS:
        spec = pods_of(overlay)[part]["spec"]
        places = [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]]
        said = json.dumps(
            [words_of(overlay, part), named(overlay, "ConfigMap", "freshet-settings")]
        )
        for name in ("keeper", "gateway", "agent"):
            if part == name:
                said += json.dumps(named(overlay, "ConfigMap", f"freshet-{name}")["data"])
        for place in set(places) - {"/etc/freshet/brokers"}:
            assert place in said, f"{part}: {place}"


def test_secrets_are_made_once_and_what_is_missing_is_named(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert all(f"missing: {name}:" in said for name in ASKED_FILES)
    assert all(f" {name}=," in said for name in ASKED_LINES)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert len(read_cell_secret(tmp_path / "cell-secret")) == 32
    for name in ASKED_FILES:
        (tmp_path / name).write_text("x")
    with (tmp_path / "control-plane.env").open("a") as file:
        file.writelines(f"{name}=x\n" for name in ASKED_LINES)
    assert make_secrets(tmp_path) == []
    kept = {name: (tmp_path / name).read_bytes() for name in before}
    assert kept["cell-secret"] == before["cell-secret"]
    assert kept["control-plane.env"].startswith(before["control-plane.env"])
    assert main([str(tmp_path)]) == 0
    assert main([]) == 2
