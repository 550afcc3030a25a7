"""The functions of pynvml that memlab uses, answered from a dictionary: no card is needed.

What is null in `cards` raises, as the driver does where it cannot tell.
"""

from types import SimpleNamespace


class NVMLError(Exception):
    """As in pynvml, the base of all."""


class Nvml:
    """One machine of nvml.json."""

    NVMLError = NVMLError

    def __init__(self, machine):
        self.machine = machine

    def nvmlInit(self):
        if "error" in self.machine:
            raise NVMLError(self.machine["error"])

    def nvmlDeviceGetCount(self):
        return len(self.machine["cards"])

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.machine["cards"][index]

    def nvmlDeviceGetHandleByUUID(self, uuid):
        for card in self.machine["cards"]:
            if card["uuid"].encode() == uuid:
                return card
        raise NVMLError("Not Found")

    def nvmlDeviceGetName(self, card):
        return card["name"]

    def nvmlDeviceGetMemoryInfo(self, card):
        if card["used"] is None:
            raise NVMLError("GPU is lost")
        return SimpleNamespace(total=card["total"], used=card["used"])

    def nvmlDeviceGetComputeRunningProcesses(self, card):
        return self._listed(card["compute"])

    def nvmlDeviceGetGraphicsRunningProcesses(self, card):
        return self._listed(card["graphics"])

    @staticmethod
    def _listed(found):
        if found is None:
            raise NVMLError("Not Supported")
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in found]
