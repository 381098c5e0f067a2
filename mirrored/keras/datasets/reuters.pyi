# Written by tests/support/stubs.py from the table in reuters.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.data.keras_texts import reuters_label_names as _reuters_label_names
get_label_names = _reuters_label_names
from mirrored.data.keras_texts import reuters_word_index as _reuters_word_index
get_word_index = _reuters_word_index
from mirrored.data.keras_texts import load_reuters as _load_reuters
load_data = _load_reuters
