"""How one replica is spread over devices."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Layout:
    """Parallelism of one deployment, all degrees at least 1.

    tensor_parallel: devices that share every matrix of a layer.
    pipeline_parallel: stages of consecutive layers.
    data_parallel: independent copies of the attention part (whole replicas unless expert_parallel > 1).
    expert_parallel: devices over which the experts of a layer are spread; 1 means experts are cut by tensor_parallel.
    """

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    expert_parallel: int = 1

    @property
    def devices_per_replica(self) -> int:
        """Devices of one model copy.

        >>> Layout(tensor_parallel=8, pipeline_parallel=8, data_parallel=8).devices_per_replica
        64
        """
        return self.tensor_parallel * self.pipeline_parallel

    @property
    def devices(self) -> int:
        """Devices of the whole deployment; expert parallelism lives on the same devices.

        >>> Layout(tensor_parallel=8, pipeline_parallel=8, data_parallel=8).devices
        512
        """
        return self.devices_per_replica * self.data_parallel
