"""What a container is, sees and may do, as it is written down."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.containers import bundle
from agents.containers.bundle import Place, configure, reconfigure
from agents.containers.host import Host, look, nvidia_devices
from agents.containers.images import seal, unseal
from agents.containers.runc import failure, start_failure
from agents.containers.seccomp import profile
from agents.drivers.base import DriverError, Task
from agents.protocol import Network

HOST = Host(links=(("/bin", "usr/bin"),), folders=("/usr", "/etc"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(bundle=tmp_path / "b", cgroup="/tidepool/a/j3-r1-e2", netns=tmp_path / "netns")


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "replica" / "workspace").mkdir(parents=True)
    return Task(
        key="j3-r1-e2",
        folder=tmp_path / "replica",
        output=tmp_path / "output",
        command=("python", "train.py"),
        environment={"RANK": "1", "HOME": "/elsewhere"},
        cpus=1.5,
        cpuset="0-1",
        memory=1 << 30,
        pids=64,
        network=Network(number=4, address="10.77.0.3/24"),
    )


def mounts(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {mount["destination"]: mount for mount in config["mounts"]}


def test_the_process_has_no_privileges(task: Task, place: Place) -> None:
    process = configure(task, place, HOST)["process"]
    assert process["user"]["uid"] == process["user"]["gid"] > 60_000
    assert process["capabilities"] == {}
    assert process["noNewPrivileges"]
    assert process["args"] == ["python", "train.py"]
    assert process["cwd"] == "/workspace"


def test_limits_are_those_of_the_task(task: Task, place: Place) -> None:
    limits = configure(task, place, HOST)["linux"]["resources"]
    assert limits["memory"] == {"limit": 1 << 30}
    assert limits["pids"] == {"limit": 64}
    assert limits["cpu"] == {"quota": 150_000, "period": 100_000, "cpus": "0-1"}
    assert limits["devices"] == [{"allow": False, "access": "rwm"}]


def test_the_tasks_variables_win_over_defaults(task: Task) -> None:
    variables = bundle.environment(task)
    assert (variables["RANK"], variables["HOME"]) == ("1", "/elsewhere")
    assert variables["PATH"].startswith(str(Path(sys.prefix, "bin")))


def test_all_but_the_workspace_is_read_only(task: Task, place: Place) -> None:
    config = configure(task, place, HOST)
    assert config["root"]["readonly"]
    bound = {m["destination"]: m for m in config["mounts"] if m["type"] == "bind"}
    writable = [name for name, mount in bound.items() if "ro" not in mount["options"]]
    assert writable == ["/workspace"]
    assert bound["/workspace"]["source"] == str(task.folder / "workspace")


def test_its_own_name_resolves_and_outlives_the_epoch(task: Task, place: Place) -> None:
    config = configure(task, place, HOST)
    bundle.write(config, task, place, HOST)
    assert config["hostname"] == "j3-r1"
    assert "10.77.0.3 j3-r1\n" in place.hosts.read_text()
    assert (place.bundle / "rootfs" / "bin").readlink() == Path("usr/bin")


def test_users_are_per_job_and_the_same_for_its_replicas() -> None:
    assert bundle.user_of("j3-r0-e1") == bundle.user_of("j3-r7-e9") != bundle.user_of("j4-r0-e1")


def test_a_restored_one_keeps_its_mounts_at_the_new_place(
    task: Task, place: Place, tmp_path: Path
) -> None:
    dumped = configure(task, place, HOST)
    new = Place(bundle=tmp_path / "new", cgroup="/tidepool/b/j3-r1-e3", netns=tmp_path / "other")
    config = reconfigure(dumped, task, new, Host(links=(), folders=("/usr",)))
    assert mounts(config).keys() == mounts(dumped).keys()
    assert mounts(config)["/etc/hosts"]["source"] == str(new.hosts)
    assert config["linux"]["cgroupsPath"] == new.cgroup
    assert {"type": "network", "path": str(new.netns)} in config["linux"]["namespaces"]
    assert mounts(dumped)["/etc/hosts"]["source"] == str(place.hosts), "the dump is not altered"


def test_a_folder_behind_a_link_is_bound_from_where_it_really_is(
    task: Task, place: Place, tmp_path: Path
) -> None:
    """CRIU cannot restore a mount whose source is a symbolic link."""
    real, link = tmp_path / "python-3", tmp_path / "python"
    real.mkdir()
    link.symlink_to(real)
    dumped = configure(task, place, Host(links=(), folders=(str(link),)))
    assert mounts(dumped)[str(link)]["source"] == str(real)
    restored = reconfigure(dumped, task, place, HOST)
    assert mounts(restored)[str(link)]["source"] == str(real)


def test_a_folder_that_this_node_lacks_is_named(task: Task, place: Place) -> None:
    dumped = configure(task, place, Host(links=(), folders=("/usr", "/no/such/python")))
    with pytest.raises(DriverError, match="/no/such/python") as refusal:
        reconfigure(dumped, task, place, HOST)
    assert refusal.value.id == "restore-failed"


def test_the_interpreter_is_shown_where_it_is() -> None:
    folders = look().folders
    for prefix in (sys.prefix, sys.base_prefix):
        assert any(Path(prefix).resolve().is_relative_to(folder) for folder in folders)
    assert not {"/", "/root", "/home", "/tmp", "/var"} & set(folders)


def test_a_share_below_what_is_shown_is_not_bound_again(tmp_path: Path) -> None:
    (tmp_path / "usr" / "share").mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    shown = look(shares=[Path("/usr/share"), Path("/data")], root=tmp_path)
    assert shown.links == (("/lib", "usr/lib"),)
    assert "/data" in shown.folders
    assert "/usr/share" not in shown.folders


def test_only_the_devices_asked_for_are_found(tmp_path: Path) -> None:
    for index, uuid in enumerate(("GPU-a", "GPU-b")):
        folder = tmp_path / f"0000:0{index}:00.0"
        folder.mkdir()
        text = f"GPU UUID: \t {uuid}\nDevice Minor: \t {index}\n"
        (folder / "information").write_text(text)
    assert nvidia_devices((), tmp_path) == []
    assert all(n["path"] != "/dev/nvidia0" for n in nvidia_devices(("GPU-b",), tmp_path))


def test_what_cannot_be_dumped_looks_absent_and_namespaces_are_refused() -> None:
    refusals = profile("x86_64")["syscalls"]
    absent = {name for r in refusals if r["errnoRet"] == 38 for name in r["names"]}
    assert {"io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"} <= absent
    forbidden = {name for r in refusals if r["errnoRet"] == 1 for name in r["names"]}
    assert {"mount", "setns", "unshare", "bpf", "keyctl", "clone"} <= forbidden
    masks = [r["args"][0]["value"] for r in refusals if r["names"] == ["clone"]]
    assert sum(masks) == 0x7E020000


def test_a_seal_tells_whole_images_from_others(tmp_path: Path) -> None:
    (tmp_path / "pages-1.img").write_bytes(b"x" * 4096)
    with pytest.raises(DriverError, match="not whole"):
        unseal(tmp_path)
    seal(tmp_path, {"hostname": "j3-r1"})
    assert unseal(tmp_path) == {"hostname": "j3-r1"}
    (tmp_path / "pages-1.img").write_bytes(b"x" * 4095)
    with pytest.raises(DriverError, match=r"pages-1\.img") as refusal:
        unseal(tmp_path)
    assert refusal.value.id == "image-damaged"


@pytest.mark.parametrize(
    ("said", "id"),
    [
        ('exec: "nope": executable file not found in $PATH', "command-not-found"),
        ("exec: ./nope: no such file or directory", "command-not-found"),
        ('exec: "./train.py": permission denied', "command-not-executable"),
        ("cannot set memory limit", "start-failed"),
    ],
)
def test_why_a_start_failed_has_a_name(said: str, id: str) -> None:
    assert start_failure(said, "nope").id == id


def test_the_first_real_error_of_the_log_is_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "dump.log"
    log.write_text(
        "(00.001) Error (criu/util.c:1534): rlimit: Can't setup RLIMIT_NOFILE for self\n"
        "(00.020) Error (criu/sockets.c:12): Unsupported socket\n"
        "(00.021) Error (criu/cr-dump.c:1975): Dumping FAILED.\n"
    )
    error = failure("dump-failed", "It cannot be dumped", log, "criu failed")
    assert (error.id, str(error)) == ("dump-failed", "It cannot be dumped: Unsupported socket")
    log.write_text("(00.020) Error (criu/image.c:1): write: No space left on device\n")
    assert failure("dump-failed", "It cannot be dumped", log, "").id == "disk-full"


def test_the_configuration_is_plain_json(task: Task, place: Place) -> None:
    assert json.loads(json.dumps(configure(task, place, HOST)))["ociVersion"] == "1.0.2"
