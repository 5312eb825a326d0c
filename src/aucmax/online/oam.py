r"""OAM: online AUC maximisation with a buffer of rows.

Zhao, Hoi, Jin and Yang (ICML 2011) minimise the pairwise hinge loss, summed over pairs,
by pairing each row with a sample of the other class: B rows of each class are kept in a
buffer (:mod:`aucmax.online.engine.buffer`). With z the difference, positive minus
negative,

* ``seq`` takes the pairs in turn: w += min(C_t, max(0, 1 - w·z)/‖z‖²) z, the
  passive-aggressive step (PA-I), the smallest change that corrects the pair, up to C_t
  (C_t/2 in the paper, which minimises ‖v - w‖² + C_t ℓ(v), without ½);
* ``gra`` takes them at once: w += (C_t/2) Σ z over the pairs with w·z ≤ 1.

The sample stands for all rows so far: C_t = C max(1, seen/B), with the number of rows
of the other class seen. (Corrected: the thesis prints C max(1, seen, B).)

Deviations from the paper:

* steps are scaled feature by feature (:mod:`aucmax.online.engine`), so raw features do
  as well as standardised ones, and C is relative to the mean of ‖z‖²;
* C falls with the number of rows, and the buffer has the last rows;
* a weighted average of the iterates is returned;
* one random number decides whether and where a row is stored, and the random numbers
  are the same for every model, so that streams have no random seed.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from aucmax.base.class_moments import NEG, POS
from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Rows, pack_row
from aucmax.online import engine
from aucmax.online.base import OnlineAUC
from aucmax.online.engine import Table, Visit, learn, renew
from aucmax.online.engine import buffer as buffers
from aucmax.online.engine import buffered_rows as held
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.buffer import LENGTH, VALUES, WEIGHT
from aucmax.online.engine.feature_table import assign

# Powers of the number of rows with which steps fall.
_POWERS = {"constant": 0.0, "invsqrt": 0.5, "inv": 1.0, "printed": 0.0}
# A squared length below this fraction of those of the two rows is rounding error.
_ROUNDING = 1e-13

# Slots of State.z: steps; whether a row had zeros; rows of each class offered to the
# buffer (2); its random generator (2).
T, HOLES, SEEN, SEED = 0, 1, 2, 4


class State(NamedTuple):
    """State of the learner; updated in place."""

    table: Table
    rows: Float  # (2, 2B, width) buffered rows, see aucmax.online.engine.buffer
    slots: Float  # (2, 2B) their lengths and weights
    z: Float  # (6,) slots above


def init(n_features: int, buffer_size: int, precondition: bool) -> State:
    """Return the state before the first row."""
    z = np.zeros(6)
    z[SEED:] = buffers.SEED
    table = engine.empty(n_features, precondition)
    return State(table, *buffers.empty(buffer_size), z)


@kernel
def update(
    X: Rows,
    y: Float,
    order: NDArray[np.int64],
    state: State,
    how: Visit,
    C: float,
    power: float,
    sequential: bool,
    reservoir: bool,
    average: bool,
    printed: bool,
) -> None:
    """Run Algorithm 1 over the rows ``order`` of ``X``."""
    table, rows, slots, z = state
    feat = table.feat
    seen, seed = z[SEEN : SEEN + 2], z[SEED : SEED + 2]
    d, size, width = feat.shape[1], slots.shape[1] // 2, rows.shape[2]
    lengths, at = slots[LENGTH], buffers.features_of(rows, slots)
    values, places = rows[VALUES].reshape(-1), at.reshape(-1)  # flat
    x, features = np.empty(width), np.empty(width, np.uint32)
    dx, shift, steps = np.zeros(d), np.zeros(d), np.empty(size)
    if z[HOLES] == 0.0:
        assign(shift, table.ref)
    for k in range(order.shape[0]):
        i = order[k]
        news = learn(X, y, i, table, how)
        if news.ready and news.stale:
            renew(table, how)
            if z[HOLES] == 0.0:
                assign(shift, table.ref)
        side, other, y_t = (POS, NEG, 1.0) if y[i] > 0.0 else (NEG, POS, -1.0)
        length = pack_row(X, i, x, features)
        if length < d and z[HOLES] == 0.0:
            z[HOLES] = 1.0
            shift[:] = 0.0

        # The pairs of the row, in turn or all at the same w.
        pairs = buffers.filled(seen, other, size)
        if pairs > 0:
            z[T] += 1.0
            C_t = C if printed else C / (2.0 * stats.mean_norm(table))
            C_t = C_t * max(1.0, seen[other] / size) * stats.weight_of(y, i, table)
            if power > 0.0:
                C_t /= max(1.0, (seen[POS] + seen[NEG]) / (2.0 * size))
                effective = stats.class_balance(table) * z[T]
                falling = effective / stats.effective_width(table)
                C_t /= (1.0 + falling) ** power
            if length == d:
                s, x_x = held.look_full(x, feat, shift, dx)
            else:
                s, x_x = held.look(x, features, length, feat, dx)
            total = 0.0  # sum of the steps so far, which w takes along D x in the end
            past = stats.average_weight(table)
            for phase in range(1 if sequential else 2):
                for b in range(pairs):
                    slot = other * size + b
                    start, count = np.uint64(slot * width), np.uint64(lengths[slot])
                    full = lengths[slot] == d
                    if phase == 0:
                        if full:
                            s_b, x_xb = held.compare_full(
                                values, start, feat, shift, dx
                            )
                        else:
                            s_b, x_xb = held.compare(
                                values, places, start, count, feat, dx
                            )
                        margin = y_t * (s - s_b - total * x_xb)
                        longest = C_t * slots[WEIGHT, slot] * stats.weight_unit(table)
                        steps[b] = 0.0
                        if sequential and margin < 1.0:
                            if full:
                                xb_xb = held.square_full(values, start, feat, shift)
                            else:
                                xb_xb = held.square(values, places, start, count, feat)
                            z_z = x_x - 2.0 * x_xb + xb_xb
                            if z_z > _ROUNDING * (x_x + xb_xb):
                                steps[b] = y_t * min(longest, (1.0 - margin) / z_z)
                                s += steps[b] * (x_x - x_xb)
                        elif not sequential and margin <= 1.0:
                            steps[b] = y_t * (0.5 * longest)
                    if steps[b] != 0.0 and (sequential or phase == 1):
                        c = -steps[b]
                        if full:
                            held.move_full(values, start, feat, shift, c, past)
                        else:
                            held.move(values, places, start, count, feat, c, past)
                        total += steps[b]
            start, count = np.uint64(0), np.uint64(length)
            if length == d:
                held.move_full(x, start, feat, shift, total, past)
            else:
                held.move(x, features, start, count, feat, total, past)
            buffers.erase(features, length, dx)
            if average:
                stats.add_to_average(table, z[T])

        slot = buffers.find_slot(seen, side, size, reservoir, seed)
        if slot >= 0:
            buffers.put(rows, slots, at, slot, x, features, length, abs(y[i]))


class OAM(OnlineAUC):
    r"""Online AUC maximisation with the hinge loss and a buffer.

    Pairs each row with a sample of the other class, to minimise

    .. math:: J(w) = E\,\max(0, 1 - w \cdot (x^+ - x^-)) .

    There is no penalty, but early steps count less in the average.

    Parameters
    ----------
    C : float, default=0.6
        Longest step along a pair, in units of one over the mean squared length of a
        pair, times the number of rows that a buffered one stands for. With
        ``schedule="printed"`` the paper's C, a plain number.
    update : {"seq", "gra"}, default="seq"
        Correct the pairs of a row one after the other, or by one gradient step.
    buffer_size : int, default=100
        Buffered rows of each class.
    policy : {"fifo", "reservoir"}, default="fifo"
        Buffer the last rows, or a random sample of all so far, as in the paper: for
        streams whose order matters, such as one class first.
    schedule : {"inv", "invsqrt", "constant", "printed"}, default="inv"
        How C falls: with the number of rows; with its square root; not at all, so that
        steps grow with the number of rows. "printed" is the last one, with C a plain
        number.
    .. shared: average
    precondition : bool, default=True
        Scale features internally.
    .. shared: passes

    See Also
    --------
    CBR : The same pairs, with a covariance of the weights.
    SPAM : The square loss, which needs no buffer.

    Notes
    -----
    A row costs O(B nnz), B the buffer size; memory is ten numbers per feature and the
    buffered rows. ``fit`` makes one more pass for exact class moments, ``partial_fit``
    uses running ones.

    As published: ``OAM(C, schedule="printed", policy="reservoir", precondition=False,
    average=False)`` and ``partial_fit``, with ``update`` for the two variants.

    References
    ----------
    .. [1] P. Zhao, S. Hoi, R. Jin, T. Yang, "Online AUC Maximization", ICML 2011.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from aucmax import OAM
    >>> X, y = make_classification(2000, weights=[0.9], flip_y=0.05, random_state=0)
    >>> round(OAM(random_state=0).fit(X, y).score(X, y), 2)
    0.93
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **OnlineAUC._parameter_constraints,
        "update": [StrOptions({"seq", "gra"})],
        "schedule": [StrOptions(set(_POWERS))],
    }

    def __init__(
        self,
        C: float = 0.6,
        *,
        update: str = "seq",
        buffer_size: int = 100,
        policy: str = "fifo",
        schedule: str = "inv",
        average: bool = True,
        precondition: bool = True,
        max_iter: int = 5,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.update = update
        self.buffer_size = buffer_size
        self.policy = policy
        self.schedule = schedule
        self.average = average
        self.precondition = precondition
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state

    def _start(self, n_features: int) -> State:
        return init(n_features, int(self.buffer_size), bool(self.precondition))

    def _with_room(self, state: Any, rows: Rows, signed: Float) -> Any:
        return buffers.widened(state, rows, signed)

    def _validate_state(self, state: Any) -> None:
        seen, seed = state.z[SEEN : SEEN + 2], state.z[SEED : SEED + 2]
        buffers.check(state, seen, seed, self.n_features_in_)

    def _update(
        self, X: Rows, y: Float, order: NDArray[np.int64], state: State, how: Visit
    ) -> None:
        C, printed = float(self.C), self.schedule == "printed"
        sequential, reservoir = self.update == "seq", self.policy == "reservoir"
        if printed and sequential:
            C *= 0.5  # the paper minimises ‖v - w‖² + C ℓ(v), without ½
        rule = C, _POWERS[self.schedule], sequential, reservoir
        update(X, y, order, state, how, *rule, bool(self.average), printed)

    def fade(self, share: float) -> None:
        """Multiply the weight of all past rows by ``share``."""
        engine.fade(self.state_.table, share)
        self.state_.z[T] *= share

    def _weights(self, state: State) -> tuple[Float, float]:
        return engine.averaged(state.table)
