"""Which labels are positive."""

import json
import shlex
from fnmatch import fnmatchcase
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aucmax.tables.labels import LabelError, Task


def words(*labels):
    return np.array(labels, dtype=object)


@pytest.mark.parametrize(
    ("first", "positive", "negative"),
    [
        ([-1.0, 1.0], 1, -1),
        ([0.0, 1.0], 1, 0),
        ([-1.0], 1, -1),
        ([0.0], 1, 0),
        ([2.0, 1.0], 2, 1),
        ([3.5, -7.0], 3.5, -7),
        (words("+1", "-1"), "1", "-1.0"),
        (words("0"), "1", "0"),
        (words("True"), "True", "False"),
        (words("FALSE"), "TRUE", "FALSE"),
        (words("no"), "yes", "no"),
        (words("spam", "ham"), "spam", "ham"),
        (words("10", "9"), "10", "9"),
        (words("tRUE"), "true", "False"),
        (words("legit", "fraud", "fraud"), "fraud", "legit"),
        (words("good", "bad", "bad"), "bad", "good"),
        (words("no", "Yes "), "YES", "No"),
        (words(*"yyn"), "y", "n"),
        (words(*"TTF"), "T", "F"),
        (words("Not Fraud", "fraud", "fraud"), "Fraud ", "not fraud"),
        (words("nonspam", "spam", "spam"), "spam", "nonspam"),
        (words("purchase", "purchase", "no_purchase"), "purchase", "no_purchase"),
        (words("not normal", "not normal", "normal"), "not normal", "Normal"),
        (words("attack", "attack", "other"), "attack", "other"),
        (words("other", "other", "benign"), "other", "benign"),
        (words("<=50K", ">50K", "<=50K"), ">50K", "<=50K"),
        (words("a", "b", "b"), "a", "b"),
        (words("m", "m", "f"), "f", "m"),  # not the f of true and false
        (words("a", "b"), "b", "a"),  # as many: the later one
        ([1.0, 2.0, 2.0], 1, 2),
        ([0.0, 4.0, 4.0], 4, 0),
        ([1.0, 1.0, 0.0], 1, 0),
        ([1.0, 1.0, -1.0], 1, -1),
    ],
)
def test_two_labels_need_no_words_from_the_user(first, positive, negative):
    task = Task().settle(first)
    assert task.settled
    later = np.array([negative, positive, negative], np.asarray(first).dtype)
    np.testing.assert_array_equal(task.positives(later), [False, True, False])


def test_spellings_of_a_known_word_are_one_label():
    y = words("Yes ", "no", "YES", "No", "no", "yes", "yes")
    task = Task().settle(y)
    assert task == Task.of("yes", "no")  # the most frequent spelling
    np.testing.assert_array_equal(task.positives(y), [1, 0, 1, 0, 0, 1, 1])
    given = Task.of("fraud")
    np.testing.assert_array_equal(
        given.positives(words("Fraud", "x", "fraud")), [1, 0, 1]
    )
    unknown = Task.of("a", others="negative")
    np.testing.assert_array_equal(unknown.positives(words("A", "a")), [0, 1])
    apart = Task.of("Yes", "yes")  # who says so means it
    np.testing.assert_array_equal(apart.positives(words("Yes", "yes")), [1, 0])
    with pytest.raises(ValueError, match="There are 3 labels: NO, maybe, yes; "):
        Task().settle(words("yes", "no", "NO", "maybe", "yes"))


def test_a_recipe_of_old_keeps_its_labels():
    old = Task.from_json({"positive": ["legit"], "negative": ["fraud"]})
    y = words("legit", "fraud", "Legit")
    assert old.settle(y) == old
    np.testing.assert_array_equal(old.positives(y), [1, 0, 1])


def test_what_rarity_decides():
    assert Task().settle(words("a", "b", "b")).by_rarity
    assert Task().settle([1.0, 2.0, 2.0]).by_rarity
    for task in (
        Task().settle(words("good", "bad")),
        Task().settle([0.0, 1.0]),
        Task().settle([1.0]),
        Task.of("a"),
        Task.of(above=1.0),
        Task.of(halves=True).settle(words("a", "b")),
    ):
        assert not task.by_rarity


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (Task.of("fraud", "legit"), "fraud (*); * high: --positive legit"),
        (Task.of(1, -1), "1 (*); * high: --positive -1"),
        (Task().settle([1.0]), "1 (*); * high: --positive -1 or 0"),
        (Task.of(["<=50K"], [">50K"]), """<=50K (*); * --positive '">50K"'"""),
        (Task.of(["a"], ["b, c"]), """a (*); * --positive '"b, c"'"""),
        (Task.of(["a"], ["it's"]), """a (*); * --positive 'it'"'"'s'"""),
        (Task.of("a"), "a against rest (*)."),
        (Task.of(above=3), "above 3 (*)."),
        (Task.of("a", "b", others="drop"), "a against b, others dropped (*)."),
    ],
)
def test_what_is_positive_is_told(task, told):
    text = task.told(312, 10_000)
    assert "(312 of 10,000 rows, 3.12 %)" in text
    assert fnmatchcase(text, f"Positive: {told}")
    if "high" in text:  # what is advised can be typed
        (word,) = shlex.split(text.rpartition("--positive ")[2].partition(" or ")[0])
        assert Task.parse(word).positive == task.negative[:1]


@pytest.mark.parametrize("zero", [0.0, -1.0])
def test_a_stream_may_begin_with_ones_only(zero):
    task = Task().settle([1.0, 1.0])
    np.testing.assert_array_equal(task.positives([zero, 1.0]), [False, True])
    with pytest.raises(ValueError, match=r"3 labels: -1, 0, 1; .*positive=LABELS"):
        task.positives([-1.0, 0.0, 1.0])
    with pytest.raises(
        LabelError, match=r"Row 1: unknown label 2.* 1 against -1 or 0; "
    ):
        task.positives([1.0, 2.0])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([2.0, 2.0], "are 2, which may be the positive class or the negative"),
        (words("spam"), "are spam, which may be"),
        (words("fraud"), "are fraud, which may be"),
        ([1.0, 2.0, 3.0], "There are 3 labels: 1, 2, 3; "),
        (np.arange(1000.0), r"1000 labels: 0, 1, 2, 3, 4, 5, …, 999; "),
        (words("1", "spam"), "There are 2 labels: 1, spam; "),
    ],
)
def test_what_the_labels_do_not_say_is_asked_for(labels, message):
    with pytest.raises(ValueError, match=f"{message}.*positive=LABELS"):
        Task().settle(labels)


def test_one_label_or_several_against_the_rest():
    y = [0.0, 1.0, 3.0, 5.0, 99.0]
    for given_as in ("3,5", "+3, 5.0", [3, 5], ("3", 5.0), np.array([5, 3])):
        task = Task.of(given_as)
        np.testing.assert_array_equal(task.positives(y), [0, 0, 1, 1, 0])
        assert str(task) == "3, 5 against rest"
    np.testing.assert_array_equal(Task.of(3).positives(words("3.0", "x")), [1, 0])
    np.testing.assert_array_equal(Task.of("a").positives(words(" a", "b")), [1, 0])
    np.testing.assert_array_equal(Task.of(["a,b"]).positives(words("a,b", "b")), [1, 0])
    rest = Task.of(negative="ham")
    np.testing.assert_array_equal(rest.positives(words("ham", "x", "y")), [0, 1, 1])
    assert str(rest) == "rest against ham"


def test_labels_of_neither_group_are_an_error_or_dropped():
    y = words("spam", "ham", "eggs", "spam")
    with pytest.raises(LabelError, match=r"Row 2: unknown label eggs") as caught:
        Task.of("spam", "ham").positives(y)
    assert caught.value.row == 2
    drop = Task.of("spam", "ham", others="drop")
    assert str(drop) == "spam against ham, others dropped"
    np.testing.assert_array_equal(drop.sides(y), [1, -1, 0, 1])
    np.testing.assert_array_equal(drop.positives(y[:2]), [True, False])
    with pytest.raises(LabelError, match="Row 2: label eggs is neither"):
        drop.positives(y)
    both = Task.of(1, 2, others="negative")
    np.testing.assert_array_equal(both.positives([1.0, 2.0, 3.0]), [1, 0, 0])
    np.testing.assert_array_equal(
        Task.of(1, 2, others="drop").sides([3.0, 2.0, 1.0]), [0, -1, 1]
    )


def test_halves_are_the_first_labels_against_the_others():
    y = np.array([10.0, 9.0, 3.0, 2.0, 1.0])
    task = Task.of(halves=True).settle(y)
    assert (task.positive, task.negative) == ((1, 2), (3, 9, 10))
    np.testing.assert_array_equal(task.positives(y), [0, 0, 0, 1, 1])
    with pytest.raises(LabelError, match=r"Row 1: unknown label 4"):
        task.positives([1.0, 4.0])
    with pytest.raises(ValueError, match="cannot make halves"):
        Task.of(halves=True).settle([1.0])
    named = Task.of(halves=True).settle(words("b", "a", "c", "d"))
    assert named.positive == ("a", "b")


def test_halves_by_lot_have_the_same_size_and_come_again():
    y = np.arange(20.0)
    draws = {Task.of(halves=True, seed=seed).settle(y) for seed in range(50)}
    assert len({task.positive for task in draws}) == 50
    for task in draws:
        assert len(task.positive) == len(task.negative) == 10
        assert set(task.positive) | set(task.negative) == set(y)
        assert task == Task.of(halves=True, seed=task.seed).settle(y[::-1])
    often = np.sum([task.positives(y) for task in draws], axis=0)
    assert often.min() > 10  # 25 expected, five standard deviations
    assert often.max() < 40


def test_a_threshold():
    task = Task.of(above=2.5)
    np.testing.assert_array_equal(task.positives([2.5, 2.6, -np.inf]), [0, 1, 0])
    with pytest.raises(ValueError, match=r"text, such as b, .* compared with 2\.5"):
        task.positives(words("b"))
    with pytest.raises(LabelError, match="Row 1: the label is missing"):
        task.positives([1.0, np.nan])


@pytest.mark.parametrize(
    "task",
    [Task(), Task.of(1), Task.of(0, 1), Task.of(halves=True)],
)
@pytest.mark.parametrize(
    "y", [np.array([0, 1, np.nan]), words("0", "1", ""), words("0", "1", None)]
)
def test_a_missing_label_is_an_error_whatever_the_task(task, y):
    with pytest.raises(LabelError, match="Row 2: the label is missing") as caught:
        task.positives(y)
    assert caught.value.row == 2


def test_words_for_numbers_are_an_error_at_the_first_chunk():
    with pytest.raises(ValueError, match="numbers, such as 1, and cannot be spam; "):
        Task.of("spam").settle([1.0, 2.0])


def test_data_without_labels_or_without_rows():
    with pytest.raises(ValueError, match="no labels"):
        Task().settle(None)
    for task in (Task(), Task.of(1), Task.of(above=1), Task.of(halves=True)):
        for empty in ([], words()):
            assert task.settle(empty) == task
            assert task.positives(empty).shape == (0,)


@pytest.mark.parametrize(
    "wrong",
    [
        {"positive": 1, "halves": True},
        {"halves": True, "above": 1.0},
        {"positive": "1,2", "negative": "2.0"},
        {"positive": ""},
        {"positive": 1, "negative": []},
        {"positive": [None]},
        {"positive": 1, "others": "drop"},
        {"positive": 1, "negative": 2, "others": "keep"},
        {"others": "drop"},
        {"seed": 1},
        {"above": np.nan},
    ],
)
def test_a_task_that_makes_no_sense_is_an_error(wrong):
    with pytest.raises(ValueError, match=r"\w"):
        Task.of(**wrong)


LABELS = st.one_of(
    st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.0, 2.5, 1e300]), min_size=1),
    st.lists(st.sampled_from(["a", "b ", "-1", "+1", "1.0", "1e0", "Ä", "_1"])),
)
TASKS = st.one_of(
    st.just(Task()),
    st.builds(Task.of, st.sampled_from(["1", "a,b", 2.5, ["_1", 0]])),
    st.builds(lambda others: Task.of("1,a", "2,b", others=others),
              st.sampled_from(["error", "drop", "negative", "positive"])),
    st.builds(lambda seed: Task.of(halves=True, seed=seed), st.sampled_from([None, 3])),
    st.just(Task.of(above=0.5)),
)  # fmt: skip


def slowly(task, label):
    """Return the side of a label by the words of the documentation."""
    if task.above is not None:
        return 1 if label > task.above else -1
    try:
        label = label if "_" in str(label) else float(label)
    except ValueError:
        label = label.strip()
    if label in task.positive:
        return 1
    if label in task.negative:
        return -1
    return {"negative": -1, "positive": 1, "drop": 0}[task.others]


@given(task=TASKS, labels=LABELS)
def test_each_row_has_the_side_of_its_label(task, labels):
    y = np.array(labels)
    y = y.astype(object) if y.dtype.kind == "U" else y
    try:
        settled = task.settle(y)
        sides = settled.sides(y)
    except ValueError:
        with pytest.raises(ValueError, match=r"positive=|cannot make halves"):
            task.sides(y)
        return
    assert sides.tolist() == [slowly(settled, label) for label in labels]
    np.testing.assert_array_equal(task.sides(y), sides)
    text = json.dumps(settled.to_json())
    again = Task.from_json(json.loads(text))
    assert again == settled
    assert json.dumps(again.to_json()) == text
    assert Task.from_json(task.to_json()) == task
    assert str(again)


@pytest.mark.parametrize(
    "content",
    [None, [1], {"colour": "red"}, {"positive": "abc"}, {"positive": [None]},
     {"others": "keep"}, {"positive": [1.0], "negative": 3}],
)  # fmt: skip
def test_json_of_something_else_is_refused(content):
    with pytest.raises(ValueError, match="Invalid task"):
        Task.from_json(content)


def test_a_million_labels_take_no_time():
    rng = np.random.default_rng(0)
    number = rng.integers(0, 2, 1_000_000).astype(float)
    word = np.array(["ham", "spam"], dtype=object)[number.astype(int)]
    for y, limit in ((number, 0.1), (word, 0.5)):  # about 0.01 and 0.05 when idle
        task = Task().settle(y)
        best = np.inf
        for _ in range(3):
            start = perf_counter()
            positive = task.positives(y)
            best = min(best, perf_counter() - start)
        assert best < limit
        np.testing.assert_array_equal(positive, number == 1)


@pytest.mark.parametrize(
    ("text", "task"),
    [
        (None, Task()),
        ("3,5", Task.of("3,5")),
        ("spam", Task.of("spam")),
        (">3", Task.of(above=3.0)),
        (">-1e3", Task.of(above=-1000.0)),
        ("@half", Task.of(halves=True)),
        ("@half:7", Task.of(halves=True, seed=7)),
        ("half", Task.of("half")),
    ],
)
def test_words_of_the_command_line(text, task):
    assert Task.parse(text) == task


@pytest.mark.parametrize(
    "text", [">", ">x", ">inf", "@", "@third", "@half:", "@half:x"]
)
def test_words_that_mean_nothing(text):
    with pytest.raises(ValueError, match="@half:SEED"):
        Task.parse(text)
