"""What the calculator tells of a step, its peak and its hills, beside the simulated step itself."""

from memlab.page.answer import ORDER
from memlab.page.peak import CACHE
from memlab.step.core.moments import hills


def hold(told, step, state):
    """Assert that every figure is the step's; `state` is named where one is not."""
    assert told["total"] == step.peak.bytes == sum(row["bytes"] for row in told["rows"]), state
    held = hills(step)
    tops = {name: ledger.total() for name, ledger in held.items()}
    assert {name: size for name, size, _ in told["hills"]} == tops, state
    for name, stack in told["stacks"].items():
        figures = dict.fromkeys([term for term, _ in stack], 0)
        for row in held[name].rows:  # the page has no rows of their own for inputs and buffers
            term = {"kv_cache": CACHE}.get(row.term, row.term)
            figures[term if term in ORDER else "other"] += row.derived
        assert dict(stack) == figures, state
    assert max(tops, key=tops.__getitem__) == told["moment"], state
