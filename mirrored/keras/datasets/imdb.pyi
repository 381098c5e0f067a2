# Written by tests/support/stubs.py from the table in imdb.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.data.keras_texts import imdb_word_index as _imdb_word_index
get_word_index = _imdb_word_index
from mirrored.data.keras_texts import load_imdb as _load_imdb
load_data = _load_imdb
