"""Snakemake's Kubernetes executor for Gaudis, `--executor kubernetes-gaudi`.

The plugin that this builds on asks for `nvidia.com/gpu` or `amd.com/gpu` and nothing else, and works without a shared
file system. Here jobs ask for `habana.ai/gaudi` and run in the checkout itself, on a volume that all pods share.

Not in the library's folder: Snakemake imports every executor that it finds, and this one needs
snakemake-executor-plugin-kubernetes. `export PYTHONPATH=$PWD/workflow/plugins` makes it known.
"""

# No annotations from __future__: Snakemake makes its options of the settings' types.
import os
from dataclasses import dataclass, field
from typing import Any

import kubernetes.client
from snakemake_executor_plugin_kubernetes import Executor as KubernetesExecutor
from snakemake_executor_plugin_kubernetes import ExecutorSettings as KubernetesSettings
from snakemake_interface_executor_plugins.settings import CommonSettings

from snakemake_executor_plugin_kubernetes_gaudi.pod import Submitting, for_gaudi


@dataclass
class ExecutorSettings(KubernetesSettings):
    hugepages_mib: int = field(default=0, metadata={"help": "Huge pages of 2 MiB a Gaudi, in MiB; 0 for none."})
    host_paths: list[str] = field(
        default_factory=list,
        metadata={"help": "Folders of the node to mount (<path> or <path>:<path in the pod>).", "nargs": "+"},
    )


common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
)


class Executor(KubernetesExecutor):
    """The Kubernetes executor, whose API rewrites each job on its way."""

    # A property, since the plugin makes a new API whenever its credentials run out.
    @property
    def batchapi(self) -> Submitting:
        return self._batchapi

    @batchapi.setter
    def batchapi(self, api: Any) -> None:
        self._batchapi = Submitting(api, self._rewrite)

    def _rewrite(self, job: Any) -> None:
        settings = self.workflow.executor_settings
        for_gaudi(
            job,
            hugepages_mib=settings.hugepages_mib,
            host_paths=settings.host_paths,
            working_dir=os.getcwd(),
            make=kubernetes.client,
        )
