"""A real Kubernetes with real pods, within a `with` block."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from tests.kubernetes.control_plane import ControlPlane, Servers
from tests.kubernetes.pods import packages
from tests.kubernetes.pods.network import Network
from tests.kubernetes.pods.node import IDENTITY, SERVERS, Node


class Disposable(ControlPlane):
    """A control plane whose data is not needed after its end."""

    def stop(self) -> None:
        """Kills all servers at once. On SIGTERM they would wait for the clients that watch."""
        for _, process in self._processes:
            process.kill()
        super().stop()


class Cluster:
    """A Kubernetes with one node."""

    def __init__(self, folder: Path, network: Network, images: tuple[Path, ...] = ()) -> None:
        self.network = network
        self.control_plane = Disposable(
            folder / "control-plane",
            Servers(SERVERS, address=network.outside),
            {IDENTITY: ("system:nodes",)},
        )
        self.node = Node(folder, network)
        self._images = images

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a user with all rights."""
        return self.control_plane.kubeconfig()

    def start(self) -> None:
        """Starts everything. Returns once pods can be created."""
        packages.ready_tools()
        with ThreadPoolExecutor(1) as beside:
            runtime = beside.submit(self._start_runtime)
            self.control_plane.start()
            runtime.result()
        self.node.start_kubelet(self.control_plane)

    def stop(self) -> None:
        """Ends the control plane; the node ends with its network."""
        self.control_plane.stop()

    def _start_runtime(self) -> None:
        self.node.start_runtime()
        for image in self._images:
            self.node.load_image(image)


class RunningCluster:
    """A Kubernetes within a `with` block, of which nothing is left at the end."""

    def __init__(self, *images: Path) -> None:
        self._images = images
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Cluster:
        """Starts the Kubernetes."""
        with self._stack:
            network = Network()
            # The folder's path is short because paths of sockets are limited. The earlier node of
            # this
            # number may have been killed and left files.
            folder = Path(tempfile.gettempdir()) / f"freshet-node-{network.number}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            self._stack.callback(shutil.rmtree, folder)
            cluster = Cluster(folder, network, self._images)
            self._stack.callback(cluster.node.close)
            self._stack.callback(cluster.stop)
            self._stack.enter_context(network)
            cluster.start()
            self._stack = self._stack.pop_all()
        return cluster

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the Kubernetes, and removes its files."""
        self._stack.close()
