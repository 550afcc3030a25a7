"""Evaluates expressions and says what came out, in words. Runs in both engines."""


def answers(modules, cases):
    """The answer to each case: an expression that may use the modules by their last name."""
    scope = {}
    found = {}
    for name in modules:
        try:
            scope[name.split(".")[-1]] = __import__(name, None, None, ["*"])
            found[name] = "imported"
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    for case in cases:
        try:
            found[case] = words(eval(case, scope))
        except Exception as error:
            found[case] = f"{type(error).__name__}: {error}"
    return found


def words(value):
    """A float exactly, as a whole number over a power of two: the engines print it differently."""
    if isinstance(value, float) and value:
        down = 0
        while value != int(value):
            value *= 2
            down += 1
        return f"{int(value)} / 2**{down}"
    return repr(value)
