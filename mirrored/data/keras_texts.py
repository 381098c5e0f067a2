"""Keras' data sets of texts, each of which is a list of the numbers of its words.

Their files are read where `keras_files.py` looks for them, and nothing is downloaded.
"""

import json
import os
from collections.abc import Sequence

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._files import as_path
from mirrored._types import PathLike
from mirrored.data.keras_files import Array, Sets, arrays_of, check_there, datasets_folder

_Texts = list[list[int]]


def load_imdb(
    path: PathLike = "imdb.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    seed: int | None = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
) -> Sets:
    """Return 25,000 and 25,000 reviews of films, and whether each is a good one.

    Args:
        path: The file, from Keras' folder of data sets on.
        num_words: Numbers from this one on stand for rarer words, which are left out; None: as in
            Keras, the largest number of all.
        skip_top: Numbers below this one are left out too.
        maxlen: Texts of this length and longer ones are left out; None: none.
        seed: The seed of their order; None is another one each time.
        start_char: The number that texts begin with; None: none.
        oov_char: The number that stands for words that are left out; None: nothing does.
        index_from: What is added to the number of each word.

    Returns:
        (x_train, y_train), (x_test, y_test): arrays of lists of numbers, and of labels 0 and 1.

    Raises:
        FileNotFoundError: It is not there; the text says where it can be had.
        ValueError: It is another file, or no text is as short as `maxlen` says.
    """
    x_train, y_train, x_test, y_test = arrays_of(
        path, "imdb.npz", "x_train", "y_train", "x_test", "y_test", of_lists=True
    )
    rng = np.random.RandomState(seed)  # As in Keras.
    parts = [
        _texts(rng, x, y, start_char, index_from, maxlen)
        for x, y in ((x_train, y_train), (x_test, y_test))
    ]
    if maxlen and not all(texts for texts, _ in parts):
        raise ValueError(
            f"After filtering for sequences shorter than maxlen={maxlen}, no sequence was kept. "
            "Increase maxlen."
        )
    (train, labels), (test, other_labels) = parts
    texts = _without_rare_words(train + test, num_words, skip_top, oov_char)
    return _divided(texts, np.concatenate([labels, other_labels]), len(train))


def load_reuters(
    path: PathLike = "reuters.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    test_split: float = 0.2,
    seed: int | None = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
) -> Sets:
    """Return 11,228 pieces of news, and which of 46 topics each is about.

    Args:
        path: The file, from Keras' folder of data sets on.
        num_words: As for `imdb.load_data`.
        skip_top: The same.
        maxlen: The same.
        test_split: The part of the texts that are set aside, from 0 up to 1.
        seed: The seed of their order; None is another one each time.
        start_char: As for `imdb.load_data`.
        oov_char: The same.
        index_from: The same.

    Returns:
        (x_train, y_train), (x_test, y_test): arrays of lists of numbers, and of labels.

    Raises:
        FileNotFoundError: It is not there; the text says where it can be had.
        ValueError: It is another file.
    """
    x, y = arrays_of(path, "reuters.npz", "x", "y", of_lists=True)
    texts, labels = _texts(np.random.RandomState(seed), x, y, start_char, index_from, maxlen)
    texts = _without_rare_words(texts, num_words, skip_top, oov_char)
    return _divided(texts, labels, int(len(texts) * (1 - test_split)))


def _texts(
    rng: np.random.RandomState,
    texts: Array,
    labels: Array,
    start: int | None,
    shift: int,
    maxlen: int | None,
) -> tuple[_Texts, Array]:
    """Return texts in an order of a seed's, with numbers for words as they are asked for."""
    order = np.arange(len(texts))
    rng.shuffle(order)
    begin = [] if start is None else [start]
    shifted = [[*begin, *(word + shift for word in text)] for text in texts[order]]
    kept = [i for i, text in enumerate(shifted) if not maxlen or len(text) < maxlen]
    return [shifted[i] for i in kept], labels[order][kept]


def _without_rare_words(
    texts: _Texts, num_words: int | None, skip_top: int, instead: int | None
) -> _Texts:
    end = num_words or max(map(max, texts))
    filler = [] if instead is None else [instead]
    return [
        [number for word in text for number in ([word] if skip_top <= word < end else filler)]
        for text in texts
    ]


def _divided(texts: _Texts, labels: Array, count: int) -> Sets:
    first, last = (np.array(part, object) for part in (texts[:count], texts[count:]))
    return (first, labels[:count]), (last, labels[count:])


def imdb_word_index(path: PathLike = "imdb_word_index.json") -> dict[str, int]:
    """Return the number of each word of the reviews, before `index_from` is added.

    Args:
        path: The file, from Keras' folder of data sets on.

    Raises:
        FileNotFoundError: It is not there; the text says where it can be had.
        ValueError: It is another file.
    """
    return _word_index(path, "imdb_word_index.json")


def reuters_word_index(path: PathLike = "reuters_word_index.json") -> dict[str, int]:
    """Return the number of each word of the news, before `index_from` is added.

    Args:
        path: The file, from Keras' folder of data sets on.

    Raises:
        FileNotFoundError: It is not there; the text says where it can be had.
        ValueError: It is another file.
    """
    return _word_index(path, "reuters_word_index.json")


def _word_index(path: PathLike, name: str) -> dict[str, int]:
    place = os.path.join(datasets_folder(), as_path(path, "data set"))
    check_there(place, name)
    with open(place, encoding="utf-8") as file:
        index: dict[str, int] = json.load(file)
    return index


_TOPICS = """
cocoa grain veg-oil earn acq wheat copper housing money-supply coffee sugar trade reserves ship
cotton carcass crude nat-gas cpi money-fx interest gnp meal-feed alum oilseed gold tin
strategic-metal livestock retail ipi iron-steel rubber heat jobs lei bop zinc orange pet-chem dlr
gas silver wpi hog lead
"""


def reuters_label_names() -> Sequence[str]:
    """Return the 46 topics, in the order of the labels.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.datasets.reuters.get_label_names()[:2]
        ('cocoa', 'grain')
    """
    return tuple(_TOPICS.split())


explain_functions(__name__)
