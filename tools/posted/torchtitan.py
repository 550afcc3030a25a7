"""torchtitan and torchao: peaks under FSDP2, nearly all of them compiled."""

from .described import Refused


def describe(reading):
    """Nothing of these is described yet.

    Raises      Refused
    """
    what = reading.what
    told = f"{what.get('run', '')} {reading.id}"
    if "nocompile" in reading.id and "compile" not in reading.id.split("/")[-1].split():
        if "float8" in told:
            raise Refused("float8 products under FSDP2")
        raise Refused("the local batch is not stated")
    if "eager" in told:
        raise Refused("selective checkpointing by operator")
    raise Refused("torch.compile under FSDP2")
