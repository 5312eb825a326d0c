"""The same numbers in every memory layout that callers may pass."""

import numpy as np
from scipy import sparse


def strided(X):
    wider = np.zeros((2 * X.shape[0], 2 * X.shape[1]), dtype=X.dtype)
    wider[::2, ::2] = X
    return wider[::2, ::2]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def int64_indices(X):
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def read_only_csr(X):
    X = sparse.csr_array(X)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


def unsorted_csr(X):
    """Return a CSR matrix with entries in reverse order, one of them in two parts."""
    X = sparse.csr_array(X)
    data, indices, indptr = [], [], [0]
    for i in range(X.shape[0]):
        at = slice(X.indptr[i], X.indptr[i + 1])
        halves = X.data[at][::-1] / 2
        data += [halves, halves]
        indices += [X.indices[at][::-1]] * 2
        indptr.append(indptr[-1] + 2 * len(halves))
    return sparse.csr_array(
        (np.concatenate(data), np.concatenate(indices), indptr), X.shape
    )


def stored_zeros(X):
    """Return a CSR matrix that stores all its zeros."""
    n, d = X.shape
    index = np.tile(np.arange(d), n)
    return sparse.csr_array((X.ravel(), index, np.arange(0, n * d + 1, d)), X.shape)


DENSE = {
    "Fortran": np.asfortranarray,
    "strided": strided,
    "reversed": lambda X: X[::-1].copy()[::-1],
    "read-only": read_only,
    "list": np.ndarray.tolist,
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
}
SPARSE = {
    "int64": int64_indices,
    "read-only": read_only_csr,
    "unsorted": unsorted_csr,
    "CSC": sparse.csc_array,
    "COO": sparse.coo_array,
    "matrix": sparse.csr_matrix,
}
