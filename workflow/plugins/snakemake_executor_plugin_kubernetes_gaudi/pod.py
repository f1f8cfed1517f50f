"""What a job's pod needs on a Gaudi node, on top of what the Kubernetes plugin writes.

Source: Intel, Running Kubernetes Workloads with Gaudi (docs.habana.ai): the resource `habana.ai/gaudi`, huge pages for
the driver, the host's shared memory for HCCL, and SYS_NICE. Nothing of Kubernetes is imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ASKED, GAUDI, HUGEPAGES = "nvidia.com/gpu", "habana.ai/gaudi", "hugepages-2Mi"


def for_gaudi(job: Any, *, hugepages_mib: int, host_paths: Sequence[str], working_dir: str, make: Any) -> None:
    """Rewrites a job in place.

    Args:
        job: a V1Job as the plugin is about to submit it, with one container.
        hugepages_mib: of 2 MiB pages a Gaudi, MiB; 0 for none.
        host_paths: folders of the node, as ``path`` or ``path:path in the pod``.
        working_dir: where the job runs: the checkout, on a file system that all pods share.
        make: the module with Kubernetes' classes.
    """
    pod = job.spec.template.spec
    (container,) = pod.containers
    container.working_dir = working_dir
    for number, path in enumerate(host_paths):
        there, _, here = path.partition(":")
        name = f"host-{number}"
        source = make.V1HostPathVolumeSource(path=there, type="Directory")
        pod.volumes = [*(pod.volumes or []), make.V1Volume(name=name, host_path=source)]
        container.volume_mounts.append(make.V1VolumeMount(name=name, mount_path=here or there))
    resources = container.resources
    asked = int(resources.requests.pop(ASKED, 0))
    resources.limits = {name: value for name, value in (resources.limits or {}).items() if name != ASKED}
    pod.tolerations = [one for one in pod.tolerations or [] if one.key != ASKED]
    if not asked:
        return
    # A device's request must equal its limit, and so must that of huge pages.
    devices = {GAUDI: str(asked)} | ({HUGEPAGES: f"{asked * hugepages_mib}Mi"} if hugepages_mib else {})
    resources.requests |= devices
    resources.limits |= devices
    pod.host_ipc = True
    container.security_context = make.V1SecurityContext(capabilities=make.V1Capabilities(add=["SYS_NICE"]))


class Submitting:
    """An API of Kubernetes whose jobs are rewritten as they are submitted; all else passes."""

    def __init__(self, api: Any, rewrite: Any) -> None:
        self._api, self._rewrite = api, rewrite

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def create_namespaced_job(self, namespace: str, body: Any, **options: Any) -> Any:
        self._rewrite(body)
        return self._api.create_namespaced_job(namespace, body, **options)
