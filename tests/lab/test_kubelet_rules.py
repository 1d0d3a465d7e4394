"""The process kubelet's rules: probes, statuses, environment, the worker image's entry point. No server needed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lab.kubelet import spec
from tests.lab.kubelet.status import Probe, Seen, exit_phase, pod_status, restart_delay, state

POD: dict[str, Any] = {
    "metadata": {"name": "w-0", "namespace": "slurm", "annotations": {"a/b": "tree:leaf0"}, "labels": {}},
    "spec": {"containers": [{"name": "slurmd", "image": "i"}], "subdomain": "workers"},
}


def lookup(plural: str, name: str) -> dict[str, Any]:
    return {("secrets", "s"): {"data": {"k": "aGk="}}, ("configmaps", "c"): {"data": {"k": "yo"}}}[plural, name]


def test_a_probe_that_has_not_passed_is_asked_often_and_fails_once_a_period() -> None:
    probe = Probe({"periodSeconds": 10, "failureThreshold": 2}, since=0.0)
    for second in range(10):
        assert probe.due(float(second))
        probe.note(False, float(second))
    assert not probe.broken
    probe.note(False, 10.0)
    assert (probe.broken, probe.passing) == (True, False)


def test_a_probe_that_passed_keeps_its_period_and_its_threshold() -> None:
    probe = Probe({"periodSeconds": 10, "failureThreshold": 2}, since=0.0)
    probe.note(True, 0.0)
    assert probe.passing and not probe.due(9.9) and probe.due(10.0)
    probe.note(False, 10.0)
    assert probe.passing
    probe.note(False, 20.0)
    assert not probe.passing


def test_a_probe_waits_for_its_first_delay_and_for_its_successes() -> None:
    probe = Probe({"initialDelaySeconds": 5, "successThreshold": 2}, since=100.0)
    assert not probe.due(104.9) and probe.due(105.0)
    probe.note(True, 105.0)
    assert not probe.passing
    probe.note(True, 105.1)
    assert probe.passing


@pytest.mark.parametrize(("restarts", "seconds"), [(0, 0), (1, 10), (2, 20), (5, 160), (6, 300), (99, 300)])
def test_restart_delay(restarts: int, seconds: float) -> None:
    assert restart_delay(restarts, 1.0) == seconds


def test_a_condition_that_stays_keeps_its_time() -> None:
    main = [Seen("slurmd", "i", started_at=5.0, started=True, ready=True, waiting="")]
    first = pod_status({}, [], main, True, "10.0.0.2", "10.0.0.1", 10.0, False)
    again = pod_status(first, [], main, True, "10.0.0.2", "10.0.0.1", 99.0, False)
    assert first == again and first["phase"] == "Running"
    main[0].ready = False
    lost = pod_status(first, [], main, True, "10.0.0.2", "10.0.0.1", 99.0, False)
    times = {c["type"]: (c["status"], c["lastTransitionTime"]) for c in lost["conditions"]}
    assert times["Ready"] == ("False", "1970-01-01T00:01:39Z")
    assert times["Initialized"] == ("True", "1970-01-01T00:00:10Z")


def test_a_pod_whose_containers_never_started_is_pending_and_not_ready() -> None:
    said = pod_status({}, [], [Seen("slurmd", "i", message="no secret")], True, "", "10.0.0.1", 1.0, False)
    assert said["phase"] == "Pending" and "podIP" not in said
    assert said["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating", "message": "no secret"}}
    assert {c["status"] for c in said["conditions"] if c["type"] in ("Ready", "ContainersReady")} == {"False"}


@pytest.mark.parametrize(("codes", "phase"), [((0, 0), "Succeeded"), ((0, 1), "Failed"), ((None,), "Failed")])
def test_exit_phase(codes: tuple[int | None, ...], phase: str) -> None:
    assert exit_phase([Seen("c", "i", started_at=1.0, code=c) for c in codes]) == phase


def test_an_ended_container_is_terminated_unless_it_waits_for_its_next_start() -> None:
    seen = Seen("c", "i", started_at=1.0, code=137, ended_at=2.0, waiting="")
    assert state(seen)["terminated"]["exitCode"] == 137
    seen.waiting = "CrashLoopBackOff"
    assert state(seen)["waiting"]["reason"] == "CrashLoopBackOff"


@pytest.mark.parametrize(
    ("text", "out"), [("$(A)/x", "1/x"), ("$(B)", "$(B)"), ("$$(A)", "$(A)"), ("$A", "$A"), ("$$$(A)", "$1")]
)
def test_expand(text: str, out: str) -> None:
    assert spec.expand(text, {"A": "1"}) == out


def test_environment_in_order_with_secrets_and_the_pods_facts() -> None:
    env: list[dict[str, Any]] = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)2"},
        {"name": "T", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a/b']"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "L", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    container = {
        "env": env,
        "envFrom": [{"prefix": "P_", "secretRef": {"name": "s"}}],
        "resources": {"limits": {"cpu": "2"}},
    }
    said = spec.environment(POD, container, lookup, {"status.podIP": "10.0.0.2"})
    assert [said[k] for k in ("A", "B", "T", "IP", "L", "P_k", "HOSTNAME")] == [
        "1",
        "12",
        "tree:leaf0",
        "10.0.0.2",
        "2",
        "hi",
        "w-0",
    ]


@pytest.mark.parametrize("ref", [{"name": "none", "key": "k"}, {"name": "s", "key": "none"}])
def test_environment_needs_its_secret(ref: dict[str, str]) -> None:
    container = {"env": [{"name": "K", "valueFrom": {"secretKeyRef": ref}}]}
    with pytest.raises(KeyError):
        spec.environment(POD, container, lookup, {})
    container["env"][0]["valueFrom"]["secretKeyRef"] = {**ref, "optional": True}  # type: ignore[index]
    assert "K" not in spec.environment(POD, container, lookup, {})


def test_files_are_readable_by_the_pods_group() -> None:
    volume = {"projected": {"defaultMode": 0o600, "sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "c", "items": [{"key": "k", "path": "d/k", "mode": 0o610}]}}]}}  # fmt: skip
    plain, grouped = POD, {**POD, "spec": {**POD["spec"], "securityContext": {"fsGroup": 401}}}
    assert [(f.path, f.data, oct(f.mode)) for f in spec.files(plain, volume, lookup, {}) or []] == [
        ("k", b"hi", "0o600"),
        ("d/k", b"yo", "0o610"),
    ]
    assert [oct(f.mode) for f in spec.files(grouped, volume, lookup, {}) or []] == ["0o640", "0o650"]
    assert spec.files(plain, {"emptyDir": {}}, lookup, {}) is None


@pytest.mark.parametrize(
    ("conf", "env", "out"),
    [
        ("Features=a Topology=", {}, "Features=a"),
        ("Features=a Topology= Weight=10", {}, "Features=a Weight=10"),
        ("Features=a Topology=tree:l0", {}, "Features=a Topology=tree:l0"),
        ("Features=a", {"POD_CPUS": "3", "POD_MEMORY": "1000"}, "CoreSpecCount=1 MemSpecLimit=7000 Features=a"),
        ("Features=a", {"POD_CPUS": "0", "POD_MEMORY": "0"}, "Features=a"),
        ("Features=a", {"POD_CPUS": "9", "POD_MEMORY": "9000"}, "Features=a"),
    ],
)
def test_slurmd_arguments(conf: str, env: dict[str, str], out: str) -> None:
    assert spec.slurmd_arguments(["-Z", "--conf", conf, "-v"], env, 4, 8000) == ["-Z", "--conf", out, "-v"]


def test_slurmd_arguments_without_conf_stay() -> None:
    assert spec.slurmd_arguments(["-Z", "--conf"], {"POD_CPUS": "1"}, 4, 8000) == ["-Z", "--conf"]


@pytest.mark.parametrize(
    ("args", "out"),
    [
        (["-Z", "--conf-server", "c.slurm:6817"], ("c.slurm", 6817)),
        (["--conf-server", "c"], ("c", 6817)),
        (["-Z"], None),
    ],
)
def test_conf_server(args: list[str], out: tuple[str, int] | None) -> None:
    assert spec.conf_server(args) == out


def test_host_lines_name_pods_by_their_service_and_the_controller_by_its_name() -> None:
    assert spec.host_lines([(POD, "10.0.0.2")], {"c.slurm": "10.0.0.1"}).splitlines() == [
        "127.0.0.1 localhost",
        "10.0.0.2 w-0.workers.slurm.svc.cluster.local w-0.workers.slurm.svc w-0.workers.slurm w-0",
        "10.0.0.1 c.slurm",
    ]
