"""Exact sums of products: of whole numbers, which few of the products of others make them.

A sum is [(count, (names))], such as [(2, ("N", "H")), (1, ("D",))] for 2 · N · H + D.
"""

from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement

import numpy as np

Sum = list[tuple[int, tuple[str, ...]]]
Values = dict[str, int]
MOST_FOR_THREE = 60
FEW = 9  # names of which products of three are tried together, too


def fit(
    wanted: Sequence[int], given: Sequence[Values], names: Sequence[str], degree: int = 3
) -> Sum | None:
    """The shortest sum that makes every wanted number from the values beside it, or None."""
    y = np.array(wanted, dtype=np.int64)
    if (y == y[0]).all():
        return [(int(y[0]), ())] if y[0] else []
    columns: dict[tuple[str, ...], np.ndarray] = {(): np.ones(len(y), dtype=np.int64)}
    alone = {n: np.array([v[n] for v in given], dtype=np.int64) for n in names}
    alone = {n: column for n, column in alone.items() if (column != column[0]).any()}
    seen: set[bytes] = {columns[()].tobytes()}
    for length in range(1, degree + 1):
        for word in combinations_with_replacement(alone, length):
            column = np.prod([alone[n] for n in word], axis=0)
            if length < 3 or len(alone) <= FEW:
                if column.tobytes() in seen:
                    continue
                seen.add(column.tobytes())
                columns[word] = column
            if column.all() and (y % column == 0).all():
                each = y // column
                if (each == each[0]).all():
                    return [(int(each[0]), word)]
        if length == 1 and (found := _of_several(y, columns)):
            return found
    return _of_several(y, columns)


def _of_several(y: np.ndarray, columns: dict[tuple[str, ...], np.ndarray]) -> Sum | None:
    words = list(columns)
    matrix = np.array([columns[word] for word in words], dtype=float)
    long = np.sqrt((matrix**2).sum(axis=1))
    long[long == 0] = 1
    unit = matrix / long[:, None]
    size = float(np.sqrt((y.astype(float) ** 2).sum()))
    gram, part = unit @ unit.T, unit @ (y / size)
    with np.errstate(divide="ignore", invalid="ignore"):
        det = 1 - gram**2
        a = (part[:, None] - gram * part[None, :]) / det
        b = (part[None, :] - gram * part[:, None]) / det
        left = np.abs(1 - a * part[:, None] - b * part[None, :])
    left[~np.isfinite(left)] = 1
    for i, j in np.argwhere(np.triu(left < 1e-9, 1))[:200]:
        if found := _whole(y, [words[i], words[j]], columns):
            return found
    if len(y) < 10:
        return None
    likely = range(len(words)) if len(words) <= MOST_FOR_THREE else _likely(unit, y, MOST_FOR_THREE)
    three = np.array(list(combinations(likely, 3)))
    if len(three):
        grams = gram[three[:, :, None], three[:, None, :]] + 1e-13 * np.eye(3)
        parts = part[three]
        solved = np.linalg.solve(grams, parts[:, :, None])[:, :, 0]
        left = np.abs(1 - (solved * parts).sum(axis=1))
        for at in np.argsort(left)[:40]:
            if left[at] < 1e-8:
                if found := _whole(y, [words[i] for i in three[at]], columns):
                    return found
    return _chased(y, words, columns)


def _likely(unit: np.ndarray, y: np.ndarray, most: int) -> list[int]:
    order = np.argsort(-np.abs(unit @ (y / np.linalg.norm(y.astype(float)))))
    return [int(i) for i in order[:most]]


def _chased(
    y: np.ndarray, words: list[tuple[str, ...]], columns: dict[tuple[str, ...], np.ndarray]
) -> Sum | None:
    """Column by column, always the one that explains most of what is left."""
    chosen: list[tuple[str, ...]] = []
    rest = y.astype(float)
    for _ in range(min(6, len(y) // 3)):
        left = [w for w in words if w not in chosen]
        if not left:
            return None
        best = max(
            left,
            key=lambda w: abs(float(columns[w] @ rest)) / float(np.linalg.norm(columns[w]) or 1),
        )
        chosen.append(best)
        matrix = np.array([columns[w] for w in chosen], dtype=float).T
        solved, *_ = np.linalg.lstsq(matrix, y.astype(float), rcond=None)
        rest = y - matrix @ solved
        if found := _whole(y, chosen, columns):
            return found
    return None


def _whole(
    y: np.ndarray, words: list[tuple[str, ...]], columns: dict[tuple[str, ...], np.ndarray]
) -> Sum | None:
    """The sum of these products in whole numbers, if it is exact."""
    matrix = np.array([columns[word] for word in words], dtype=float).T
    solved, *_ = np.linalg.lstsq(matrix, y.astype(float), rcond=None)
    counts = [round(each) for each in solved]
    made = sum(n * columns[word] for n, word in zip(counts, words, strict=True))
    if not (made == y).all():
        return None
    return [(n, word) for n, word in zip(counts, words, strict=True) if n]
