"""What two sets of conditions have to do with each other. Only what can be proven counts."""

from __future__ import annotations

from collections.abc import Iterable

from jobtrack.core.place import Condition, Gap, Scalar


def covers(general: Iterable[Condition], special: Iterable[Condition]) -> bool:
    """True if every answer that meets all of ``special`` also meets all of ``general``."""
    special = tuple(special)
    return all(any(_implies(held, wanted) for held in special) for wanted in general)


def exclude(left: Iterable[Condition], right: Iterable[Condition]) -> bool:
    """True if no answer can meet both."""
    right = tuple(right)
    return any(_contradict(one, other) or _contradict(other, one) for one in left for other in right)


def _key(value: Scalar, *, fold: bool) -> tuple[type, Scalar]:
    return type(value), value.casefold() if fold and isinstance(value, str) else value


def _there(condition: Condition) -> bool:
    """True if the condition can only hold for a value that is there and not null."""
    return condition.gap is None and condition.present is not False


def _implies(held: Condition, wanted: Condition) -> bool:
    """True if ``held`` makes ``wanted`` certain."""
    if held.at != wanted.at:
        return False
    if held == wanted:
        return True
    if wanted.present is not None:
        return _there(held) is wanted.present
    if wanted.gap is not None:
        return wanted.gap is Gap.EITHER and not _there(held)
    if wanted.equals and held.equals and (wanted.fold or not held.fold):
        accepted = {_key(value, fold=wanted.fold) for value in wanted.equals}
        return all(_key(value, fold=wanted.fold) in accepted for value in held.equals)
    if wanted.above is not None:
        return _above(held, wanted.above)
    return wanted.empty is False and bool(held.equals) and "" not in held.equals


def _above(held: Condition, floor: int) -> bool:
    if held.above is not None:
        return held.above >= floor
    return bool(held.equals) and all(type(value) is int and value > floor for value in held.equals)


def _contradict(left: Condition, right: Condition) -> bool:
    """True if both cannot hold, as seen from ``left``."""
    if left.at != right.at:
        return False
    if _there(left) is not _there(right):
        return True
    if left.gap is not None and right.gap is not None:
        return Gap.EITHER not in (left.gap, right.gap) and left.gap is not right.gap
    if left.equals and right.equals:
        fold = left.fold or right.fold
        return not {_key(value, fold=fold) for value in left.equals} & {
            _key(value, fold=fold) for value in right.equals
        }
    if left.empty is not None and right.empty is not None:
        return left.empty is not right.empty
    if left.empty is True and right.equals:
        return "" not in right.equals
    if left.above is not None and right.equals:
        return not any(type(value) is int and value > left.above for value in right.equals)
    return left.above is not None and right.empty is True
