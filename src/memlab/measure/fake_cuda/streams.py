"""Streams, events and device contexts of a card that is not there: they order nothing."""

from typing import Any

import torch


class Stream:
    """Any stream or event; what is asked of it is done, or answered with itself."""

    cuda_stream = stream_id = device_index = priority = 0
    device_type = 1

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", 0)

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def record_event(self, event: Any = None) -> Any:
        return event or Event()

    def nothing(self, *_: Any, **__: Any) -> None:
        pass

    synchronize = wait_stream = wait_event = wait = record = nothing

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class Event(Stream):
    """An event, a millisecond after any other."""

    def elapsed_time(self, _: Any) -> float:
        return 1.0


class Marks:
    """Ranges that a profiler would show."""

    def __getattr__(self, name: str) -> Any:
        return Stream().nothing


class Current:
    """The number of the current device, and what sets it; that of the rank's own is 0."""

    def __init__(self, own: int = 0) -> None:
        self.index, self.own = 0, own

    def set(self, device: Any) -> None:
        self.index = self.of(device)

    def of(self, device: Any) -> int:
        """The number that a device, a text or a tensor means; the current one for none."""
        if isinstance(device, torch.Tensor):
            device = device.device
        if isinstance(device, str):
            device = torch.device(device)
        if isinstance(device, torch.device):
            device = device.index
        number = self.index if device is None or device < 0 else int(device)
        return 0 if number == self.own else number

    def context(self) -> type:
        """A class in the place of torch.cuda.device."""
        current = self

        class Device:
            def __init__(self, device: Any = None) -> None:
                self.idx = current.of(device)
                self.prev_idx = -1

            def __enter__(self) -> "Device":
                self.prev_idx, current.index = current.index, self.idx
                return self

            def __exit__(self, *_: Any) -> None:
                current.index = self.prev_idx

        return Device
