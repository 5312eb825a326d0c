"""Data sets that several papers use."""

from aucmax_reproduction.protocol import Subject

ABSENT = Subject(None, cannot="the data set is not in the registry")

_COVTYPE = "351,885 of the 581,012 rows are here, drawn at random"
_HALVES = "the paper drew two groups of classes at random, and does not say which"

# Two classes in all papers.
DIABETES = Subject("diabetes")
FOURCLASS = Subject("fourclass")
GERMAN = Subject("german")
SPLICE = Subject("splice", merged=True)
A9A = Subject("a9a", part="train")
IJCNN1 = Subject("ijcnn1", merged=True)

# Unknown class groups.
USPS = Subject("usps", unknown=True, merged=True, cannot=_HALVES)
MNIST = Subject("mnist", part="train", unknown=True, cannot=_HALVES)
LETTER = Subject("letter", part="train", unknown=True, cannot=_HALVES)
COVTYPE = Subject("covtype_sample", unknown=True, note=_COVTYPE, cannot=_HALVES)
SECTOR = Subject("sector", unknown=True, merged=True, cannot=_HALVES)
NEWS20 = Subject("news20", unknown=True, cannot=_HALVES)

COVTYPE_SAMPLE = Subject("covtype_sample", note=_COVTYPE)

# The twelve sets of natole2018 and the thesis.
TWELVE = {
    "diabetes": DIABETES,
    "fourclass": FOURCLASS,
    "german": GERMAN,
    "splice": SPLICE,
    "usps": USPS,
    "a9a": A9A,
    "mnist": MNIST,
    "acoustic": ABSENT,
    "ijcnn1": IJCNN1,
    "covtype": COVTYPE,
    "sector": SECTOR,
    "news20": NEWS20,
}
