"""Worker pods of a real API server, run as processes that a real slurmctld takes for its nodes."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.kube import KubeLab, start_or_skip
from tests.lab.kubelet import Kubelet, need
from tests.lab.slurm import SlurmLab, wait_for
from tests.lab.slurm import missing as slurm_missing
from tests.lab.worker_pods import NODES, World, plain, worker

pytestmark = [pytest.mark.slurm, pytest.mark.kube]


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmLab]:
    if why := slurm_missing():
        (pytest.fail if os.environ.get("SLINKYTUI_NO_SKIP") else pytest.skip)(why)
    need()
    lab = SlurmLab.start("26.05", nodes=0)
    try:
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="module")
def kube(slurm: SlurmLab) -> Iterator[KubeLab]:
    lab = start_or_skip(kcm=True, scheduler=True)
    try:
        lab.namespace("slurm")
        key = base64.b64encode((slurm.folder / "etc/slurm.key").read_bytes()).decode()
        lab.post(
            "/api/v1/namespaces/slurm/secrets", {"metadata": {"name": "slurm-auth-slurm"}, "data": {"slurm.key": key}}
        )
        yield lab
    finally:
        lab.stop()


@pytest.fixture(scope="module")
def kubelet(kube: KubeLab, slurm: SlurmLab) -> Iterator[Kubelet]:
    with Kubelet(kube, NODES, slurm) as running:
        yield running


@pytest.fixture
def world(kube: KubeLab, slurm: SlurmLab, kubelet: Kubelet) -> World:
    return World(kube, slurm)


def test_worker_registers_runs_a_job_and_leaves(world: World, kubelet: Kubelet) -> None:
    pod = worker("first-0")
    pod["spec"]["nodeName"] = NODES[0]
    name = world.create(pod)
    world.ready(name)
    wait_for(lambda: world.node(name).startswith("idle"), 10, "the node is not idle")
    first = kubelet.worker("slurm", name).processes["slurmd"].pid
    job = world.submit("hostname > /tmp/said; sleep 0.1")
    wait_for(lambda: world.job(job)[0] == "COMPLETED", 15, "the job did not end")
    assert world.job(job)[1] == name
    assert kubelet.exec("slurm", name, "cat", "/tmp/said").stdout.strip() == name
    status = world.pod(name)["status"]
    assert status["podIP"] in world.slurm.run("scontrol", "show", "node", name)
    assert status["initContainerStatuses"][0]["ready"]
    world.delete(name)
    world.gone(name)
    assert not Path(f"/proc/{first}").exists()
    assert world.node(name) == "down slurm-operator: Pod is terminating"


def test_scheduler_spreads_workers_and_a_job_spans_them(world: World) -> None:
    names = [world.create(worker(f"pair-{at}")) for at in range(2)]
    world.ready(*names)
    assert {world.pod(n)["spec"]["nodeName"] for n in names} == set(NODES)
    job = world.submit("srun hostname", nodes="2", tasks=2)
    wait_for(
        lambda: world.job(job)[0] not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING"), 15, "the job did not end"
    )
    state, nodes = world.job(job)
    assert (state, sorted(world.slurm.run("scontrol", "show", "hostnames", nodes).split())) == ("COMPLETED", names)
    for name in names:
        world.delete(name)
    for name in names:
        world.gone(name)


def test_a_pod_of_the_same_name_is_the_same_node_again(world: World) -> None:
    pod = worker("again-0")
    pod["spec"]["nodeName"] = NODES[1]
    name = world.create(pod)
    world.ready(name)
    first = world.pod(name)["status"]["podIP"]
    world.delete(name)
    world.gone(name)
    world.create(pod)
    world.ready(name)
    # Slurm keeps the state and its reason over the new pod: whoever set it has to take it back.
    assert world.node(name) == "down slurm-operator: Pod is terminating"
    world.slurm.run("scontrol", "update", f"nodename={name}", "state=resume")
    wait_for(lambda: world.node(name).startswith("idle"), 10, "the node is not idle")
    second = world.pod(name)["status"]["podIP"]
    assert second != first
    wait_for(lambda: f"NodeAddr={second} " in world.slurm.run("scontrol", "show", "node", name), 5, "the old address")
    world.delete(name)
    world.gone(name)


def test_a_job_on_a_deleted_worker_goes_back_to_the_queue(world: World) -> None:
    pod = worker("busy-0")
    pod["spec"]["nodeName"] = NODES[0]
    name = world.create(pod)
    world.ready(name)
    job = world.submit("sleep 300")
    wait_for(lambda: world.job(job) == ("RUNNING", name), 15, "the job does not run")
    world.delete(name)
    world.gone(name)
    (found,) = world.rest(f"/job/{job}")["jobs"]
    assert (found["job_state"][0], found["restart_cnt"]) == ("PENDING", 1)
    world.slurm.run("scancel", str(job))


def test_an_api_server_that_restarts_disturbs_no_pod(world: World, kubelet: Kubelet) -> None:
    names = [f"calm-{at}" for at in range(2)]
    for name, node in zip(names, NODES, strict=True):
        pod = worker(name)
        pod["spec"]["nodeName"] = node
        world.create(pod)
    world.ready(*names)
    before = [kubelet.worker("slurm", n).processes["slurmd"].pid for n in names]
    world.kube.stop_apiserver()
    os.kill(before[1], signal.SIGKILL)
    world.kube.start_apiserver()
    wait_for(
        lambda: world.main(names[1])["restartCount"] == 1 and world.is_ready(names[1]), 15, "the restart is not told"
    )
    assert kubelet.worker("slurm", names[0]).processes["slurmd"].pid == before[0]
    assert world.main(names[0])["restartCount"] == 0
    for name in names:
        world.delete(name)
    for name in names:
        world.gone(name)


def test_a_claim_is_kept_over_pods(world: World) -> None:
    claim = {
        "metadata": {"name": "kept"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    world.kube.post("/api/v1/namespaces/slurm/persistentvolumeclaims", claim)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "kept"}}]
    # The first ends well when it may write, the second when it finds what the first wrote.
    for name, script in (("writes-0", "echo 1 > /data/file"), ("reads-0", "grep 1 /data/file")):
        pod = plain(name, script, volumes=volumes, restartPolicy="Never")
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        world.create(pod)
        wait_for(
            lambda name=name: world.pod(name)["status"]["phase"] in ("Succeeded", "Failed"), 10, f"{name} does not end"
        )
        assert world.pod(name)["status"]["phase"] == "Succeeded"
        world.delete(name)
        world.gone(name)


def test_init_containers_run_to_their_end_one_after_the_other(world: World, kubelet: Kubelet) -> None:
    pod = plain(
        "steps-0", "trap 'exit 0' TERM; while :; do sleep 60 & wait; done", volumes=[{"name": "v", "emptyDir": {}}]
    )
    mounts = [{"name": "v", "mountPath": "/v"}]
    pod["spec"]["containers"][0]["volumeMounts"] = mounts
    pod["spec"]["initContainers"] = [
        {
            "name": "one",
            "image": "sh:1",
            "command": ["sh", "-c", "sleep 0.2; echo one >> /v/steps"],
            "volumeMounts": mounts,
        },
        {"name": "two", "image": "sh:1", "command": ["sh", "-c", "echo two >> /v/steps"], "volumeMounts": mounts},
    ]
    name = world.create(pod)
    world.ready(name)
    assert kubelet.exec("slurm", name, "cat", "/v/steps", container="main").stdout.split() == ["one", "two"]
    ends = [s["state"]["terminated"]["exitCode"] for s in world.pod(name)["status"]["initContainerStatuses"]]
    assert ends == [0, 0]
    world.delete(name)
    world.gone(name)


def test_twenty_workers(world: World) -> None:
    names = [f"many-{at}" for at in range(20)]
    for at, name in enumerate(names):
        pod = worker(name)
        pod["spec"]["nodeName"] = NODES[at % 2]
        world.create(pod)
    world.ready(*names)
    wait_for(lambda: all(world.node(n).startswith("idle") for n in names), 10, "not all are idle")
    for name in names:
        world.delete(name)
    for name in names:
        world.gone(name)


def test_a_killed_slurmd_is_started_again(world: World, kubelet: Kubelet) -> None:
    pod = worker("killed-0")
    pod["spec"]["nodeName"] = NODES[0]
    name = world.create(pod)
    world.ready(name)
    os.kill(kubelet.worker("slurm", name).processes["slurmd"].pid, signal.SIGKILL)
    wait_for(lambda: world.main(name)["restartCount"] == 1 and world.is_ready(name), 15, "it did not come back")
    assert world.main(name)["lastState"]["terminated"]["exitCode"] == 137
    world.delete(name)
    world.gone(name)


def test_readiness_follows_the_probe(world: World, kubelet: Kubelet) -> None:
    pod = worker("stalled-0")
    pod["spec"]["nodeName"] = NODES[0]
    pod["spec"]["containers"][0]["readinessProbe"] |= {"periodSeconds": 1, "failureThreshold": 1}
    name = world.create(pod)
    world.ready(name)
    process = kubelet.worker("slurm", name).processes["slurmd"]
    process.signal(signal.SIGSTOP)
    wait_for(lambda: not world.is_ready(name), 10, "it is still ready")
    assert world.pod(name)["status"]["phase"] == "Running"
    process.signal(signal.SIGCONT)
    world.ready(name)
    world.delete(name)
    world.gone(name)


def test_volumes_environment_and_the_pods_own_facts(world: World, kubelet: Kubelet) -> None:
    volumes = [
        {"name": "all", "projected": {"defaultMode": 0o640, "sources": [
            {"secret": {"name": "later", "items": [{"key": "k", "path": "deep/key", "mode": 0o600}]}},
            {"configMap": {"name": "settings"}},
            {"downwardAPI": {"items": [{"path": "labels-a", "fieldRef": {"fieldPath": "metadata.labels['a']"}}]}}]}},
        {"name": "plain", "secret": {"secretName": "later"}}, {"name": "config", "configMap": {"name": "settings"}},
        {"name": "scratch", "emptyDir": {}},
    ]  # fmt: skip
    pod = plain(
        "files-0", "trap 'exit 0' TERM; touch /scratch/here; while :; do sleep 60 & wait; done", volumes=volumes
    )
    pod["metadata"]["labels"] = {"a": "b"}
    container = pod["spec"]["containers"][0]
    container["volumeMounts"] = [
        {"name": "all", "mountPath": "/all", "readOnly": True}, {"name": "plain", "mountPath": "/plain"},
        {"name": "config", "mountPath": "/etc/one.conf", "subPath": "one.conf"}, {"name": "scratch", "mountPath": "/scratch"},
    ]  # fmt: skip
    container["env"] = [
        {"name": "A", "value": "x"}, {"name": "B", "value": "$(A)-$(NONE)-$$(A)"},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "later", "key": "k"}}},
        {"name": "NO", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k", "optional": True}}},
    ]  # fmt: skip
    world.kube.post(
        "/api/v1/namespaces/slurm/configmaps", {"metadata": {"name": "settings"}, "data": {"one.conf": "1\n"}}
    )
    name = world.create(pod)
    wait_for(
        lambda: "later" in world.main(name).get("state", {}).get("waiting", {}).get("message", ""),
        10,
        "it does not wait",
    )
    assert world.pod(name)["status"]["phase"] == "Pending"
    world.kube.post("/api/v1/namespaces/slurm/secrets", {"metadata": {"name": "later"}, "stringData": {"k": "hidden"}})
    world.ready(name)

    def run(command: str) -> str:
        return kubelet.exec("slurm", name, "sh", "-c", command, container="main").stdout.strip()

    assert run("cat /all/deep/key /plain/k; echo; cat /all/labels-a") == "hiddenhidden\nb"
    assert run("stat -L -c %a /all/deep/key /all/one.conf /scratch").split() == ["600", "640", "777"]
    assert run("cat /etc/one.conf; ls /scratch") == "1\nhere"
    assert run("touch /all/new 2>/dev/null || echo refused") == "refused"
    address = world.pod(name)["status"]["podIP"]
    assert run('echo "$B $IP $NODE $KEY ${NO-unset}"') == f"x-$(NONE)-$(A) {address} {NODES[0]} hidden unset"
    world.delete(name)
    world.gone(name)


def test_who_ignores_sigterm_is_killed_when_the_grace_is_over(world: World) -> None:
    pod = plain("deaf-0", "trap '' TERM; while :; do sleep 60 & wait; done", terminationGracePeriodSeconds=1)
    pod["metadata"]["finalizers"] = ["tests/keep"]
    name = world.create(pod)
    world.ready(name)
    world.delete(name)
    wait_for(lambda: world.pod(name)["status"]["phase"] == "Failed", 10, "no final status")
    assert world.main(name)["state"]["terminated"]["exitCode"] == 137
    assert not world.is_ready(name)
    world.release(name)
    world.gone(name)


def test_a_hook_that_hangs_does_not_outlast_the_grace(world: World) -> None:
    pod = plain("hook-0", "trap 'exit 0' TERM; while :; do sleep 60 & wait; done", terminationGracePeriodSeconds=1)
    pod["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", "60"]}}}
    pod["metadata"]["finalizers"] = ["tests/keep"]
    name = world.create(pod)
    world.ready(name)
    world.delete(name)
    # SIGTERM still comes after the hook was given up.
    wait_for(lambda: world.pod(name)["status"]["phase"] == "Succeeded", 8, "no final status")
    world.release(name)
    world.gone(name)


def test_a_container_that_is_not_alive_is_restarted(world: World, kubelet: Kubelet) -> None:
    pod = plain("dead-0", "trap 'exit 0' TERM; while :; do sleep 60 & wait; done")
    alive = {"exec": {"command": ["test", "!", "-e", "/tmp/dead"]}, "periodSeconds": 1, "failureThreshold": 1}
    pod["spec"]["containers"][0]["livenessProbe"] = alive
    name = world.create(pod)
    world.ready(name)
    kubelet.exec("slurm", name, "touch", "/tmp/dead", container="main")
    wait_for(lambda: world.main(name)["restartCount"] == 1 and world.is_ready(name), 10, "it was not restarted")
    # The new container has a root of its own: the file is gone.
    assert kubelet.exec("slurm", name, "test", "-e", "/tmp/dead", container="main").returncode == 1
    world.delete(name)
    world.gone(name)


def test_who_ends_at_sigterm_has_succeeded(world: World) -> None:
    pod = plain("polite-0", "trap 'exit 0' TERM; while :; do sleep 60 & wait; done")
    pod["metadata"]["finalizers"] = ["tests/keep"]
    name = world.create(pod)
    world.ready(name)
    world.delete(name)
    wait_for(lambda: world.pod(name)["status"]["phase"] == "Succeeded", 10, "no final status")
    world.release(name)
    world.gone(name)


def test_a_deletion_by_force_ends_the_processes_at_once(world: World, kubelet: Kubelet) -> None:
    name = world.create(plain("forced-0", "trap '' TERM; while :; do sleep 60 & wait; done"))
    world.ready(name)
    pid = kubelet.worker("slurm", name).processes["main"].pid
    world.delete(name)
    world.delete(name, gracePeriodSeconds=0)
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), 5, "the process lives on")
    assert not world.pod(name)


def test_a_container_that_fails_again_and_again_backs_off(world: World) -> None:
    name = world.create(plain("loop-0", "exit 3"))
    wait_for(
        lambda: world.main(name).get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff",
        10,
        "no back-off",
    )
    assert world.main(name)["restartCount"] >= 1 and not world.is_ready(name)
    world.delete(name)
    world.gone(name)


def _tree(pid: int) -> set[int]:
    """The processes below one."""
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    below = {int(word) for file in listed for word in file.read_text().split()}
    return below.union(*(_tree(p) for p in below))


def _left(pids: set[int], link: str, folder: Path) -> list[str]:
    """What there still is of them: processes, the link, mounts below the folder."""
    alive = [f"process {p}" for p in sorted(pids) if Path(f"/proc/{p}").exists()]
    links = [link] if Path(f"/sys/class/net/{link}").exists() else []
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]
    return [*alive, *links, *mounts]


def test_nothing_is_left_after_a_failing_test(world: World, kube: KubeLab, slurm: SlurmLab) -> None:
    before = _tree(os.getpid())
    with pytest.raises(ZeroDivisionError), Kubelet(kube, ("kind-3",), slurm) as second:
        pod = worker("left-0")
        pod["spec"]["nodeName"] = "kind-3"
        world.ready(world.create(pod))
        pids, link, folder = _tree(os.getpid()) - before, second.network.link, second.folder
        assert len(_left(pids, link, folder)) > 5
        raise ZeroDivisionError
    wait_for(lambda: not _left(pids, link, folder), 5, "something is left")
    assert not folder.exists()
    world.delete("left-0", gracePeriodSeconds=0)


def test_nothing_is_left_after_a_kill(world: World, kube: KubeLab, slurm: SlurmLab, tmp_path: Path) -> None:
    program = f"""
        import types, pathlib, time
        from tests.lab.kubelet import Kubelet
        server = types.SimpleNamespace(url={kube.url!r}, ca={str(kube.ca)!r}, token={kube.token!r})
        folder, root = pathlib.Path({str(slurm.folder)!r}), pathlib.Path({str(slurm.root)!r})
        with Kubelet(server, ("kind-4",), types.SimpleNamespace(root=root, folder=folder, ctld_port={slurm.ctld_port})) as kubelet:
            print(kubelet.network.link, flush=True)
            time.sleep(600)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=Path(__file__).parent.parent.parent,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            link = process.stdout.readline().strip()
            pod = worker("shot-0")
            pod["spec"]["nodeName"] = "kind-4"
            world.ready(world.create(pod))
            pids = _tree(process.pid)
            assert len(_left(pids, link, tmp_path)) > 5
        finally:
            process.kill()
    wait_for(lambda: not _left(pids, link, tmp_path), 5, "something is left")
    world.delete("shot-0", gracePeriodSeconds=0)
