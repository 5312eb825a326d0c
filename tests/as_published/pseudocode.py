"""The algorithms as published: slow, plain, in the papers' notation.

Each is a generator that takes rows X with labels y of +1 and -1, in the order given,
and yields the weights that the algorithm would return after each of its steps. Step
sizes are absolute. Misprints are corrected, with a comment that begins with "Fix";
``literal=True`` leaves them in, to measure what a correction changes. Penalties are
those of the one objective that the estimators share,

    E (1 - w·(x⁺ - x⁻))² + l2/2 ‖w‖² + l1 ‖w‖₁,

so that the papers' λ and β are multiples of l2, as each docstring has it. Random
choices are the library's own: pairs, batches and drawn rows are arguments, reservoirs
are those of ``buffers``.
"""

import numpy as np
from scipy.special import ndtri

from aucmax.online.opaucr import draw
from helpers.buffers import Buffer


def soft(w, threshold):
    return np.sign(w) * np.maximum(np.abs(w) - threshold, 0.0)


def class_means(X, y):
    return X[y > 0].mean(axis=0), X[y < 0].mean(axis=0)


def onto_l1_ball(w, R):
    """Project on ‖w‖₁ ≤ R (Duchi et al. 2008)."""
    if np.abs(w).sum() <= R:
        return w
    u = np.sort(np.abs(w))[::-1]
    above = np.cumsum(u) - R
    rho = np.flatnonzero(u * np.arange(1, len(u) + 1) > above)[-1]
    return soft(w, above[rho] / (rho + 1))


def onto_l2_ball(w, R):
    return w * min(1.0, R / max(np.linalg.norm(w), 1e-300))


def saddle_gradients(w, a, b, alpha, x, y, p):
    """Return ∂F/∂(w, a, b, α) of the saddle point form: SOLAM, FSAUC, SPAM."""
    s = w @ x
    if y > 0:
        d_w = 2 * (1 - p) * ((s - a) - (1 + alpha)) * x
        d_a, d_b = -2 * (1 - p) * (s - a), 0.0
        d_alpha = -2 * (1 - p) * s - 2 * p * (1 - p) * alpha
    else:
        d_w = 2 * p * ((s - b) + (1 + alpha)) * x
        d_a, d_b = 0.0, -2 * p * (s - b)
        d_alpha = 2 * p * s - 2 * p * (1 - p) * alpha
    return d_w, d_a, d_b, d_alpha


def spam(X, y, eta0, l2, l1=0.0, theta=0.5):
    """Natole, Ying, Lyu 2018, Algorithm 1 (thesis, Algorithm 20), η_t = η/t^θ.

    SPAM-L2, and with l1 SPAM-NET. p and both means are known. F has the loss times
    p(1 - p), so Ω has p(1 - p) l2 for β and p(1 - p) l1 for β₁.
    """
    p, (m_pos, m_neg) = np.mean(y > 0), class_means(X, y)
    beta, beta1 = p * (1 - p) * l2, p * (1 - p) * l1
    w = np.zeros(X.shape[1])
    for t, (x_t, y_t) in enumerate(zip(X, y, strict=True), 1):
        eta = eta0 / t**theta
        a, b = w @ m_pos, w @ m_neg
        w_hat = w - eta * saddle_gradients(w, a, b, b - a, x_t, y_t, p)[0]
        w = soft(w_hat, eta * beta1) / (1 + eta * beta)
        yield w


def solam(X, y, zeta, R, l2=0.0, project=onto_l2_ball, literal=False):
    """Ying, Wen, Lyu 2016 (thesis, Algorithm 10), γ_t = ζ/√t; with l2 Algorithm 18.

    With ``onto_l1_ball`` it is SOLAM-ℓ1. κ is the largest norm so far: the paper has it
    known, which is the same where all rows have one norm, as in its experiments.
    """
    w, a, b, alpha = np.zeros(X.shape[1]), 0.0, 0.0, 0.0
    w_bar, gamma_bar, p, kappa = np.zeros(X.shape[1]), 0.0, 0.0, 0.0
    for t, (x_t, y_t) in enumerate(zip(X, y, strict=True), 1):
        gamma = zeta / np.sqrt(t)
        p = ((t - 1) * p + (y_t > 0)) / t
        kappa = max(kappa, np.linalg.norm(x_t))
        d_w, d_a, d_b, d_alpha = saddle_gradients(w, a, b, alpha, x_t, y_t, p)
        # Fix (eq. 3.16): the loss in F is p(1 - p) times that of eq. 3.3, and so has
        # to be its penalty, whose λ is l2.
        d_w = d_w + (1 if literal else p * (1 - p)) * l2 * w
        gamma_bar += gamma
        w_bar = w_bar + gamma / gamma_bar * (w - w_bar)  # v_t, from before the step
        w = project(w - gamma * d_w, R)
        a = np.clip(a - gamma * d_a, -R * kappa, R * kappa)
        b = np.clip(b - gamma * d_b, -R * kappa, R * kappa)
        # Fix (Algorithm 10): the step in α is ascent.
        d_alpha = -d_alpha if literal and l2 == 0 else d_alpha
        alpha = np.clip(alpha + gamma * d_alpha, -2 * R * kappa, 2 * R * kappa)
        yield w_bar


def fsauc(X, y, eta1, R):
    """Liu et al. 2018, Algorithms 1 to 3, for rows of norm one (κ = 1).

    Â, T and p̂ are kept from stage to stage, as the remark to Theorem 1 allows. The
    first step size is given in place of G, as in the paper's experiments. Yields the
    iterates w_t and, after the last row of a stage, v̄ (otherwise None).
    """
    n, d = X.shape
    m = int(0.5 * np.log2(2 * n / np.log2(n))) - 1
    n0 = n // m
    r, beta = 2 * np.sqrt(3) * R, 9.0
    D, eta = 2 * np.sqrt(2) * r, eta1
    v1, alpha1 = np.zeros(d + 2), 0.0
    A, T = np.zeros((2, d)), np.zeros(2)
    for k in range(m):
        v, alpha, total = v1, alpha1, np.zeros(d + 2)
        for t in range(k * n0, (k + 1) * n0):
            x_t, y_t = X[t], y[t]
            A[int(y_t < 0)] += x_t
            T[int(y_t < 0)] += 1
            total = total + v
            p = T[0] / T.sum()
            d_w, *d_ab, d_alpha = saddle_gradients(v[:d], *v[d:], alpha, x_t, y_t, p)
            v = v - eta * np.append(d_w, d_ab)
            # Alternating projections: the first round ends in both sets, as v₁ is in
            # the first and that is convex.
            v = np.append(onto_l1_ball(v[:d], R), np.clip(v[d:], -R, R))
            v = v1 + onto_l2_ball(v - v1, r)
            alpha = np.clip(alpha + eta * d_alpha, -2 * R, 2 * R)
            alpha = alpha1 + np.clip(alpha - alpha1, -D, D)
            yield v[:d], total[:d] / n0 if t + 1 == (k + 1) * n0 else None
        v1 = total / n0
        alpha1 = np.clip((A[1] / T[1] - A[0] / T[0]) @ v1[:d], -2 * R, 2 * R)
        # Fix (Lemma 1): its bound on the error of Â₋/T₋ - Â₊/T₊ is a root of what is
        # negative for few rows, and its β makes the steps grow from stage to stage.
        # Here it is their variance, at most ‖v‖² / (p(1 - p) T).
        r, beta_before = r / 2, beta
        variance = v1[:d] @ v1[:d] / max(p * (1 - p) * T.sum(), 0.5)
        beta = 9.0 + 2 * variance / r**2
        D = 2 * np.sqrt(2) * r + 3 * np.sqrt(variance)
        eta *= min(0.5 * np.sqrt(beta / beta_before), 1.0)


class Opposite:
    """Means and covariances of the classes so far, and OPAUC's gradient with them."""

    def __init__(self, d, literal=False):
        self.literal = literal
        self.T, self.c, self.S = [0, 0], np.zeros((2, d)), np.zeros((2, d, d))

    def add(self, x, side):
        """Gao et al. 2013, lines 4 to 6, 9 to 11."""
        self.T[side] += 1
        c, T = self.c[side].copy(), self.T[side]
        self.c[side] += (x - c) / T
        # Fix: Γ_t = Γ_{t-1} + (x xᵀ - Γ_{t-1})/T + c_{t-1} c_{t-1}ᵀ - c_t c_tᵀ lacks
        # - c_{t-1} c_{t-1}ᵀ / T; it is the covariance with it. The same is this:
        self.S[side] += (np.outer(x - c, x - self.c[side]) - self.S[side]) / T
        if self.literal:
            self.S[side] += np.outer(c, c) / T

    def gradient(self, w, x, side, lam):
        """Gao et al. 2013, equations 4 and 5."""
        c, S = self.c[1 - side], self.S[1 - side]
        sign = 1.0 if side == 0 else -1.0
        return lam * w - sign * (x - c) + (x - c) * ((x - c) @ w) + S @ w


def opauc(X, y, eta, l2, literal=False):
    """Gao et al. 2013, Algorithm 1, with the constant η of Theorem 2; λ is l2/2."""
    w, seen = np.zeros(X.shape[1]), Opposite(X.shape[1], literal)
    for x_t, y_t in zip(X, y, strict=True):
        side = int(y_t < 0)
        seen.add(x_t, side)
        if min(seen.T) > 0:  # otherwise L_t = 0
            w = w - eta * seen.gradient(w, x_t, side, l2 / 2)
        yield w


def opaucr(X, y, eta, l2, tau, literal=False):
    """Gao et al. 2013, Algorithm 1 with equations 8 to 11; λ is l2/2."""
    d = X.shape[1]
    w, seen = np.zeros(d), Opposite(d)
    Z, rho = np.zeros((2, d, tau)), np.zeros((2, tau))
    seed, r = np.array([12345.0, 67890.0]), np.empty(tau + 1)
    for x_t, y_t in zip(X, y, strict=True):
        side = int(y_t < 0)
        seen.add(x_t, side)
        # Fix: 1/√τ, where the paper has 1/τ and 1/√m; and ĉ, a matrix, is part of Z.
        draw(seed, 1.0, r)
        Z[side] += np.outer(x_t, r[:tau])
        rho[side] += r[:tau]
        if min(seen.T) > 0:
            other = 1 - side
            centred = Z[other] - np.outer(seen.c[other], rho[other])
            seen.S[other] = centred @ centred.T / seen.T[other]
            if literal:
                seen.S[other] /= tau
            w = w - eta * seen.gradient(w, x_t, side, l2 / 2)
        yield w


def onto_l2_ball_by(H, w, R):
    """Return the v of ‖v‖ ≤ R that is nearest in Σ H (v - w)²: H w/(H + μ)."""
    if np.linalg.norm(w) <= R:
        return w
    low, high = 0.0, np.linalg.norm(H * w) / R
    for _ in range(200):
        mu = 0.5 * (low + high)
        if np.linalg.norm(H * w / (H + mu)) > R:
            low = mu
        else:
            high = mu
    return H * w / (H + high)


def adaoam(X, y, eta, l2, delta):
    """Ding et al. 2015 (thesis, Algorithm 9); λ is l2/2."""
    lam = l2 / 2
    w, seen, s2 = np.zeros(X.shape[1]), Opposite(X.shape[1]), np.zeros(X.shape[1])
    for x_t, y_t in zip(X, y, strict=True):
        side = int(y_t < 0)
        seen.add(x_t, side)
        if min(seen.T) > 0:
            g = seen.gradient(w, x_t, side, lam)
            s2 += g**2
            H = delta + np.sqrt(s2)
            w = onto_l2_ball_by(H, w - eta * g / H, 1 / np.sqrt(lam))
        yield w


def oam(X, y, C, N, policy, update, literal=False):
    """Zhao et al. 2011 (thesis, Algorithms 4 to 7)."""
    w, buffer = np.zeros(X.shape[1]), Buffer(N, policy)
    for x_t, y_t in zip(X, y, strict=True):
        side = int(y_t < 0)
        # Fix: max(1, N_t, N) is printed; what each buffered row stands for is N_t/N.
        C_t = C * max(1.0, buffer.seen[1 - side] / N)
        if literal:
            C_t = C * max(1.0, buffer.seen[1 - side], N)
        w_t = w
        for x in buffer.rows[1 - side]:
            z = y_t * (x_t - x)
            if update == "gra":
                if w_t @ z <= 1:
                    w = w + C_t * z / 2
            elif w @ z < 1 and z @ z > 0:
                # argmin |v - w|² + C_t ℓ(v, z), eq. 2.8 (fix: z has x, not w). There
                # is no ½ before |v - w|², so the step is at most C_t/2.
                w = w + min(C_t / 2, (1 - w @ z) / (z @ z)) * z
        buffer.offer(side, x_t)
        yield w


def cbr(X, y, C, eta, M, policy, part=1.0, diagonal=False, literal=False):
    """Khalid 2019, Algorithms 4 to 6; ``part=0.5`` is Proposition 3 of chapter 5."""
    phi = ndtri(eta)
    psi, zeta = 1 + phi**2 / 2, 1 + phi**2
    mu, Sigma = np.zeros(X.shape[1]), np.eye(X.shape[1])
    buffer = Buffer(M, policy)
    for x_t, y_t in zip(X, y, strict=True):
        side = int(y_t < 0)
        for x in buffer.rows[1 - side]:
            z = x_t - x
            v, m = z @ Sigma @ z, y_t * (mu @ z)
            if literal and diagonal:
                v = np.sum(z**2 / (1 / np.diag(Sigma) + C))
            if v == 0 or phi * np.sqrt(v) - m <= 0:  # no loss
                continue
            root = np.sqrt(m**2 * phi**4 / 4 + v * phi**2 * zeta)
            alpha = min(C, max(0.0, (-m * psi + root) / (v * zeta)))
            u = (-alpha * v * phi + np.sqrt((alpha * v * phi) ** 2 + 4 * v)) ** 2 / 4
            mu = mu + part * alpha * y_t * (Sigma @ z)
            if diagonal:
                # Fix: G is Σ⁻¹, v is Σ z²/G without C, and G grows by αφ/√u z².
                grow = alpha * phi / np.sqrt(u + (v * alpha * phi if literal else 0))
                G = 1 / np.diag(Sigma) + grow * z**2
                Sigma = np.diag(1 / G)
            else:
                # Fix: the root is over u alone.
                beta = alpha * phi / (np.sqrt(u) + v * alpha * phi)
                if literal:
                    beta = alpha * phi / np.sqrt(u + v * alpha * phi)
                Sigma = Sigma - beta * np.outer(Sigma @ z, Sigma @ z)
        buffer.offer(side, x_t)
        yield mu


def uniexp(X, y, eta):
    """Kotłowski et al. 2011 as run by Gao et al. 2013; there is no pseudo-code.

    Gradient steps of one size on exp(-y f(x)) / (2 p̂_y), f(x) = w·x + b, with p̂ the
    shares so far; none before both classes were seen.
    """
    w, b, n = np.zeros(X.shape[1]), 0.0, [0, 0]
    for t, (x_t, y_t) in enumerate(zip(X, y, strict=True), 1):
        n[int(y_t < 0)] += 1
        if min(n) > 0:
            weight = 1 / (2 * n[int(y_t < 0)] / t)
            step = eta * weight * y_t * np.exp(-y_t * (w @ x_t + b))
            w, b = w + step * x_t, b + step
        yield w


def asam(Z, lam, t0, rskip, askip, proximal=False):
    """Khalid 2019, Algorithm 10, and 11 if ``proximal``, over the pairs Z = x⁺ - x⁻.

    Without ``askip`` it is SAM, "analogous but without the averaging technique".
    """
    rcount, acount, q = rskip, askip, 0
    w, w_tilde = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    for t, x_t in enumerate(Z, 1):
        eta = 1 / (lam * (t + t0))
        loss = max(0.0, 1 - w @ x_t)
        if proximal and loss > 0:
            w = w + min(eta, loss / max(x_t @ x_t, 1e-300)) * x_t
        elif loss > 0:
            w = w + eta * x_t
        rcount -= 1
        if rcount <= 0:
            w = w - rskip / (t + t0) * w
            rcount = rskip
        if askip is None:
            yield w
            continue
        acount -= 1
        if acount <= 0:
            w_tilde = (q * w_tilde + w) / (q + 1)
            q += 1
            acount = askip
        yield w_tilde


def svrg(X, y, eta, l2, l1, w_tilde, picked):
    """Thesis, Algorithm 17: the inner loop from the snapshot w̃, rows ``picked``.

    G is ∂₁F of SPAM, and Ω has p(1 - p) l2 and p(1 - p) l1 as there.
    """
    p, (m_pos, m_neg) = np.mean(y > 0), class_means(X, y)
    beta, beta1 = p * (1 - p) * l2, p * (1 - p) * l1

    def gradient(w, i):
        a, b = w @ m_pos, w @ m_neg
        return saddle_gradients(w, a, b, b - a, X[i], y[i], p)[0]

    mu = np.mean([gradient(w_tilde, i) for i in range(len(y))], axis=0)
    w = w_tilde
    for i in picked:
        w = w - eta * (gradient(w, i) - gradient(w_tilde, i) + mu)
        w = soft(w, eta * beta1) / (1 + eta * beta)
        yield w


def spdam(X, y, l2, m, batches, literal=False):
    """Thesis, Algorithm 21, from zero, with σ, τ and θ of Theorem 5.1.

    Half of the objective, so λ/2 ‖w‖² is l2/4 ‖w‖². Yields σ, τ, θ as well.
    """
    n, p, (m_pos, m_neg) = len(y), np.mean(y > 0), class_means(X, y)
    b = m_neg - m_pos
    # Fix (eq. 5.7): √p and √(1 - p), where √(2p) and √(2(1 - p)) are printed.
    x_bar = np.where((y > 0)[:, None], X - m_pos, X - m_neg)
    x_bar /= np.sqrt(np.where(y > 0, p, 1 - p))[:, None]
    # Fix (Theorem 5.1): κ is of x̄. And σ has to make the rates of w and β the same,
    # λ/(λ + 2σκ²) = (m/n) 2σ/(1 + 2σ), a quadratic in σ whose root is printed without
    # the factor λ and with 8 for 4.
    lam, kappa2 = l2 / 2, np.max(np.sum(x_bar**2, axis=1))
    root = np.sqrt((n - m) ** 2 + 4 * n * kappa2 * m / lam)
    sigma = lam * (n - m + root) / (4 * m * kappa2)
    if literal:
        sigma /= 2 * lam
    tau, theta = 1 / (4 * sigma * kappa2), 1 - lam / (lam + 2 * sigma * kappa2)
    w = w_bar = u = np.zeros(X.shape[1])
    beta = np.zeros(n)
    for batch in batches:
        # Fix: x̄ for x; the dual penalty ‖β‖²/2 of eq. 5.8 has 1/n as well.
        new = (beta[batch] + sigma * (x_bar[batch] @ w_bar)) / (1 + sigma)
        u_new = u + (new - beta[batch]) @ x_bar[batch] / n
        beta[batch] = new
        u_bar = u + n / m * (u_new - u)
        # argmin ū·w + ½ (b·w)² + b·w + l2/4 ‖w‖² + ‖w - w_t‖²/(2τ)
        H = np.outer(b, b) + (l2 / 2 + 1 / tau) * np.eye(len(w))
        w_new = np.linalg.solve(H, w / tau - b - u_bar)
        w_bar = w_new + theta * (w_new - w)
        w, u = w_new, u_new
        yield (sigma, tau, theta), w


def mba(Z, l2, l1):
    """Thesis, Algorithm 16, over the pairs Z = x⁺ - x⁻; λ₁ is l1/2 and λ₂ is l2/2."""
    mu, Sigma = Z.mean(axis=0), Z.T @ Z / len(Z)
    H, lam1 = Sigma + l2 / 2 * np.eye(len(mu)), l1 / 2
    w = np.zeros(len(mu))
    for _ in range(20_000):  # coordinate descent: the argmin of the last line
        before = w.copy()
        for j in range(len(w)):
            w[j] = soft(mu[j] - H[j] @ w + H[j, j] * w[j], lam1) / H[j, j]
        if np.abs(w - before).max() <= 1e-15 * np.abs(w).max():
            break
    yield w
