"""Meaning of common text labels such as fraud, churn, yes and no.

Words for the positive class (fraud, churn, a disease) and the negative one; case and
surrounding blanks do not matter. The list is short on purpose: words that may be either
(success, active, won) are not in it.
"""

import re

_WANTED = """
    yes true positive pos
    fraud fraudulent scam spam phishing malicious malware attack intrusion
    bad default defaulted churn churned
    disease diseased malignant cancer sick ill infected affected dead died deceased
    fail failed failure fault faulty defect defective broken
    anomaly anomalous abnormal outlier
    click clicked converted toxic
"""
_UNWANTED = """
    no false negative neg
    legit legitimate genuine ham benign clean safe
    good ok okay retained
    healthy unaffected alive control
    normal nominal inlier
    absence absent none
"""
# Recognised in pairs only: F may mean female.
_LETTERS = (("n", "y"), ("f", "t"))
_SIDES = dict.fromkeys(_UNWANTED.split(), -1) | dict.fromkeys(_WANTED.split(), 1)
_NOT = re.compile(r"(?:not|non|no|without)[\s_-]*(.+)")


def side(label: str) -> int:
    """Return 1 for a positive word, -1 for a negative one, 0 if unknown."""
    word = folded(label)
    if word in _SIDES:
        return _SIDES[word]
    negation = _NOT.fullmatch(word)
    return -_SIDES.get(negation[1], 0) if negation else 0


def identity(label: str) -> str:
    """Return a label without case if it is a known word, else unchanged."""
    return folded(label) if side(label) else label


def higher(first: str, second: str) -> str | None:
    """Return the positive one of two labels by their words, if known."""
    sides = side(first), side(second)
    if sides[0] != sides[1]:
        return first if sides[0] > sides[1] else second
    words = folded(first), folded(second)
    for one, other, label in ((*words, first), (*words[::-1], second)):
        negation = _NOT.fullmatch(other)
        if (other, one) in _LETTERS or (negation and negation[1] == one):
            return label
    return None


def folded(label: str) -> str:
    """Return a word without case and surrounding blanks."""
    return label.strip().casefold()
