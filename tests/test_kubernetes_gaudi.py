"""Gaudis behind Kubernetes: the pod that a job asks for, and the profile, as far as they go without a cluster."""

from __future__ import annotations

import ast
import importlib.util
from types import SimpleNamespace

import pytest
import yaml
from snakemake.cli import get_argument_parser

PLUGIN = "workflow/plugins/snakemake_executor_plugin_kubernetes_gaudi"


class Classes:
    """In place of Kubernetes' classes: each keeps what it is made with."""

    def __getattr__(self, name):
        return SimpleNamespace


@pytest.fixture(scope="module")
def pod(root):
    found = importlib.util.spec_from_file_location("pod", root / PLUGIN / "pod.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def job():
    """A job as the Kubernetes plugin writes it: ``job(gpus)``."""

    def make(gpus: int | None) -> SimpleNamespace:
        requests = {"cpu": "7600m", "memory": "32000M"}
        tolerations = None
        if gpus is not None:
            requests["nvidia.com/gpu"] = str(gpus)
            tolerations = [SimpleNamespace(key="nvidia.com/gpu"), SimpleNamespace(key="site")]
        container = SimpleNamespace(
            resources=SimpleNamespace(requests=requests, limits=None),
            volume_mounts=[SimpleNamespace(name="workdir", mount_path="/workdir")],
            working_dir="/workdir",
            security_context=None,
        )
        volumes = [SimpleNamespace(name="workdir")]
        spec = SimpleNamespace(containers=[container], volumes=volumes, tolerations=tolerations, host_ipc=None)
        return SimpleNamespace(spec=SimpleNamespace(template=SimpleNamespace(spec=spec)))

    return make


def rewritten(pod, job, hugepages_mib=0, host_paths=()):
    pod.for_gaudi(
        job, hugepages_mib=hugepages_mib, host_paths=host_paths, working_dir="/ceph/me/genaccel", make=Classes()
    )
    return job.spec.template.spec, job.spec.template.spec.containers[0]


@pytest.mark.parametrize(("gpus", "hugepages", "pages"), [(1, 95_000, "95000Mi"), (8, 9_000, "72000Mi"), (2, 0, None)])
def test_a_job_asks_for_gaudis_with_equal_requests_and_limits(pod, job, gpus, hugepages, pages):
    spec, container = rewritten(pod, job(gpus), hugepages)
    resources = container.resources
    assert resources.limits == {"habana.ai/gaudi": str(gpus)} | ({"hugepages-2Mi": pages} if pages else {})
    assert resources.requests == {"cpu": "7600m", "memory": "32000M"} | resources.limits
    assert spec.host_ipc is True
    assert container.security_context.capabilities.add == ["SYS_NICE"]
    assert [toleration.key for toleration in spec.tolerations] == ["site"]


@pytest.mark.parametrize("gpus", [None, 0])
def test_a_job_without_gpus_asks_for_no_gaudi(pod, job, gpus):
    spec, container = rewritten(pod, job(gpus), 95_000)
    assert container.resources.requests == {"cpu": "7600m", "memory": "32000M"}
    assert container.resources.limits == {}
    assert not spec.host_ipc


def test_a_job_runs_in_the_checkout_on_the_shared_folders(pod, job):
    spec, container = rewritten(pod, job(1), host_paths=["/ceph/me", "/scratch:/tmp/scratch"])
    assert container.working_dir == "/ceph/me/genaccel"
    assert [(v.name, v.host_path.path) for v in spec.volumes[1:]] == [("host-0", "/ceph/me"), ("host-1", "/scratch")]
    assert [mount.mount_path for mount in container.volume_mounts[1:]] == ["/ceph/me", "/tmp/scratch"]


def test_only_submissions_are_rewritten(pod):
    seen = []

    class API:
        def create_namespaced_job(self, namespace, body):
            return namespace, body

        def read_namespaced_job_status(self, name, namespace):
            return name

    api = pod.Submitting(API(), seen.append)
    assert api.read_namespaced_job_status("a", "default") == "a"
    assert not seen
    assert api.create_namespaced_job("default", "body") == ("default", "body")
    assert seen == ["body"]


def test_the_profile_holds_settings_of_snakemake_and_of_the_plugin_alone(root):
    profile = yaml.safe_load((root / "profiles/kubernetes-gaudi/config.yaml").read_text())
    known = {name for action in get_argument_parser()._actions for name in action.option_strings}
    # The plugin's own, and those of snakemake-executor-plugin-kubernetes 0.5.1, which need not be installed here.
    own = {
        statement.target.id
        for node in ast.walk(ast.parse((root / PLUGIN / "__init__.py").read_text()))
        if isinstance(node, ast.ClassDef) and node.name == "ExecutorSettings"
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    settings = own | {"namespace", "persistent_volumes"}
    known |= {f"--kubernetes-gaudi-{name.replace('_', '-')}" for name in settings} | {"--executor"}
    assert {f"--{key}" for key in profile} <= known
    assert profile["executor"] == "kubernetes-gaudi"


def test_snakemake_knows_the_executor_where_kubernetes_is_installed(root, monkeypatch):
    pytest.importorskip("snakemake_executor_plugin_kubernetes", reason="the Kubernetes plugin is not installed")
    monkeypatch.syspath_prepend(str(root / "workflow/plugins"))
    plugin = importlib.import_module("snakemake_executor_plugin_kubernetes_gaudi")
    assert plugin.ExecutorSettings(host_paths=["/ceph"]).namespace == "default"
    assert not plugin.common_settings.implies_no_shared_fs
