"""Settings come from flags, then from the environment; a wrong one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.choice import agent_name, choose_devices, choose_driver, fleet_of
from agents.config import Config, ConfigError, read_config
from agents.devices.cpu import CpuDevices
from agents.devices.fake import FakeDevices
from agents.drivers.fake import FakeDriver
from agents.drivers.process import ProcessDriver

ENVIRONMENT = {"TIDEPOOL_PORTAL": "https://tide.example/base/", "TIDEPOOL_NODE_TOKEN": "t"}


def test_flags_win_over_the_environment(tmp_path: Path) -> None:
    config = read_config(
        ["--node", "flagged", "--cores", "2-3"],
        {**ENVIRONMENT, "TIDEPOOL_NODE": "n", "TIDEPOOL_AGENT_STATE": str(tmp_path)},
    )
    assert (config.node, config.cores, config.state) == ("flagged", (2, 3), tmp_path)
    assert config.store == str(tmp_path / "store")


def test_the_link_s_address_follows_the_portal_s() -> None:
    assert read_config([], ENVIRONMENT).link_url == "wss://tide.example/base/agents/link/"
    plain = read_config(["--portal", "http://127.0.0.1:8000"], ENVIRONMENT)
    assert plain.link_url == "ws://127.0.0.1:8000/agents/link/"


def test_the_token_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    environment = {
        "TIDEPOOL_PORTAL": "http://p",
        "TIDEPOOL_NODE_TOKEN_FILE": str(tmp_path / "token"),
    }
    assert read_config([], environment).token == "from-file"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"TIDEPOOL_PORTAL": ""}, "TIDEPOOL_PORTAL"),
        ({"TIDEPOOL_PORTAL": "ftp://x"}, "TIDEPOOL_PORTAL"),
        ({"TIDEPOOL_NODE_TOKEN": ""}, "TIDEPOOL_NODE_TOKEN"),
        ({"TIDEPOOL_NODE_TOKEN": "", "TIDEPOOL_NODE_TOKEN_FILE": "/none"}, "/none"),
        ({"TIDEPOOL_DRIVER": "magic"}, "--driver"),
        ({"TIDEPOOL_CORES": "three"}, "TIDEPOOL_CORES"),
        ({"TIDEPOOL_GRACE": "soon"}, "--grace"),
        ({"TIDEPOOL_DURABLE": "perhaps"}, "--durable"),
        ({"TIDEPOOL_CACHE": "plenty"}, "--cache"),
        ({"TIDEPOOL_ON_STOP": "explode"}, "--on-stop"),
        ({"TIDEPOOL_LOG_LEVEL": "LOUD"}, "--log-level"),
    ],
)
def test_a_wrong_setting_is_named(changed: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        read_config([], {**ENVIRONMENT, **changed})


def config(tmp_path: Path, **more: str) -> Config:
    environment = {f"TIDEPOOL_{name.upper()}": value for name, value in more.items()}
    state = {"TIDEPOOL_AGENT_STATE": str(tmp_path)}
    return read_config(["--cores", "0-1"], {**ENVIRONMENT, **state, **environment})


def test_devices_by_name(tmp_path: Path) -> None:
    assert isinstance(choose_devices(config(tmp_path, devices="cpu:3")), CpuDevices)
    fakes = choose_devices(config(tmp_path, devices="fake:4:A100"))
    assert isinstance(fakes, FakeDevices)
    assert [info.kind for info in fakes.probe()] == ["A100"] * 4


@pytest.mark.parametrize("devices", ["cpu:many", "cpu:0", "fake:", "tpu", "fake:x:H100"])
def test_devices_that_cannot_be_read(tmp_path: Path, devices: str) -> None:
    with pytest.raises(ConfigError, match="--devices"):
        choose_devices(config(tmp_path, devices=devices))


def test_drivers_by_name(tmp_path: Path) -> None:
    assert isinstance(choose_driver(config(tmp_path, driver="fake")), FakeDriver)
    assert isinstance(choose_driver(config(tmp_path, driver="process")), ProcessDriver)


def test_without_root_the_process_driver_says_why_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    driver = choose_driver(config(tmp_path))
    assert isinstance(driver, ProcessDriver)
    assert "root" in driver.probe()["checkpoint"].reason
    assert "root" in driver.probe()["network"].reason


def test_an_agent_s_name_is_its_state_folder_s_own(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert agent_name(config(one, node="n")) == agent_name(config(one, node="n"))
    assert agent_name(config(one, node="n")) != agent_name(config(other, node="n"))


def test_agents_of_one_portal_are_one_fleet(tmp_path: Path) -> None:
    assert fleet_of(config(tmp_path)) == fleet_of(config(tmp_path / "b"))
    assert fleet_of(config(tmp_path)) != fleet_of(config(tmp_path, portal="http://other"))
