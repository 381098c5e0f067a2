"""Datasets of the numbers in CSV files.

Fields are those of Python's `csv`; columns of strings are refused by name.
"""

import csv
import gzip
import io
import itertools
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mirrored._arguments import explained
from mirrored._types import PathLike
from mirrored.data.dataset import Dataset
from mirrored.data.elements import DatasetBase, Element, Elements, as_count, attempt
from mirrored.data.leaf_specs import LeafSpec
from mirrored.data.records import compression_of
from mirrored.data.rng import Iteration
from mirrored.data.source_transforms import matching, names_of, rows_of_names
from mirrored.data.transform import Transform
from mirrored.errors import InvalidArgumentError
from mirrored.ops import as_dtype, float32, float64, int32, int64
from mirrored.ops.conversion import is_tensor, to_array

_INFERRED = (int32, int64, float32, float64)  # In the order in which TensorFlow tries them.


class Column:
    """How a field becomes a number.

    Args:
        default: A dtype, where each record has the field, or the number for one that is empty.
    """

    def __init__(self, default: Any) -> None:
        value = default.numpy() if is_tensor(default) else default
        dtype, self.default = value, None
        if isinstance(value, bool | int | float | np.number | list | tuple | np.ndarray):
            dtype = np.asarray(value).dtype
            if np.size(value) <= 1 and dtype.kind not in "SUO":
                array = to_array(value)  # Python's numbers become float32 and int32.
                dtype, self.default = array.dtype, array.item() if array.size else None
        if isinstance(dtype, str) or np.dtype(dtype).kind in "SUO":
            raise TypeError(
                f"Columns of CSV files must be numbers. Received: {default!r:.200}. Leave the "
                "column out by `select_cols`, or map its strings to numbers with pandas."
            )
        self.dtype = as_dtype(dtype)
        if self.dtype not in _INFERRED:
            raise TypeError(
                "Columns of CSV files must be float32, float64, int32 or int64. Received: "
                f"{self.dtype.name}. Use `cast` after reading."
            )

    def number(self, field: str | None, index: int, place: int) -> NDArray[Any]:
        """Return a field as a scalar."""
        if not field:
            if self.default is None:
                raise InvalidArgumentError(
                    f"Field {place} is required but missing in record {index}! Set a default "
                    "value for the column."
                )
            return np.asarray(self.default, self.dtype)
        try:
            return np.asarray(_parsed(field, self.dtype), self.dtype)
        except ValueError as error:
            raise InvalidArgumentError(
                f"Field {place} in record {index} is not a valid {self.dtype.name}: {field}"
            ) from error


def _parsed(field: str, dtype: np.dtype[Any]) -> float:
    """Return a field as a number; raise ValueError if it is none of a dtype."""
    if "_" in field:  # Python's numbers may have them.
        raise ValueError(field)
    if dtype.kind == "f":
        return float(field)
    value, limits = int(field), np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise ValueError("out of range")
    return value


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """How CSV files are written.

    Attributes:
        compression: How files are compressed.
        header: Whether the first line of each file is no record.
        delimiter: What is between fields.
        quotes: Whether quotation marks have a meaning.
        missing: A field that counts as empty.
        encoding: The files' encoding; bytes of others become surrogates, which numbers ignore.
    """

    compression: str
    header: bool
    delimiter: str
    quotes: bool
    missing: str
    encoding: str = "utf-8"

    def records(self, name: str) -> Generator[list[str], None, None]:
        """Yield the fields of each record of a file."""
        with closing(self.rows(name)) as rows:
            yield from itertools.islice(rows, self.header, None)

    def rows(self, name: str) -> Generator[list[str], None, None]:
        """Yield the fields of each row of a file, the header too; an empty line is an empty field.

        Raises:
            InvalidArgumentError: A field is longer than `csv.field_size_limit()`.
        """
        binary: Any = (gzip.open if self.compression == "GZIP" else open)(name, "rb")
        if self.compression == "ZLIB":
            with binary:
                binary = io.BytesIO(zlib.decompress(binary.read()))
        with io.TextIOWrapper(binary, self.encoding, "surrogateescape", "") as file:
            rows = csv.reader(
                file,
                delimiter=self.delimiter,
                quoting=csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE,
            )
            try:
                for row in rows:
                    yield row or [""]
            except csv.Error as error:
                raise InvalidArgumentError(
                    f"Line {rows.line_num} cannot be read: {error}. Close its quotation mark, or "
                    "raise `csv.field_size_limit`."
                ) from error


class CsvRows(Transform):
    """The rows of CSV files, each a tuple of scalars.

    Args:
        names: The files.
        columns: The columns that are read.
        places: Which fields they are; None: all of them.
        form: How the files are written.
    """

    def __init__(
        self,
        names: Sequence[str],
        columns: Sequence[Column],
        places: Sequence[int] | None,
        form: CsvFormat,
    ) -> None:
        self._names, self._columns, self._places, self._form = names, columns, places, form
        self.declare(tuple(LeafSpec((), column.dtype) for column in columns))

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of tuples."""
        index = 0
        for name in self._names:
            with closing(self._form.records(name)) as records:
                for fields in records:
                    yield attempt(self._row, fields, index)
                    index += 1

    def _row(self, fields: list[str], index: int) -> Element:
        expected = len(self._columns)
        if self._places is None:
            if len(fields) != expected:
                raise InvalidArgumentError(
                    f"Expect {expected} fields but have {len(fields)} in record {index}"
                )
            chosen = list(enumerate(fields))
        else:
            if max(self._places) >= len(fields):
                raise InvalidArgumentError(
                    f"Expect more than {max(self._places)} fields but have {len(fields)} in record "
                    f"{index}"
                )
            chosen = [(place, fields[place]) for place in self._places]
        return tuple(
            column.number(None if field == self._form.missing else field, index, place)
            for column, (place, field) in zip(self._columns, chosen, strict=True)
        )


class CsvDataset(Dataset[Any]):
    r"""The rows of CSV files, each a tuple of scalars.

    Args:
        filenames: A file, several in a list, or a dataset of their names.
        record_defaults: For each column that is read a dtype, where no field of it is empty, or
            the number for those that are.
        compression_type: "GZIP", "ZLIB", or "" or None for none.
        buffer_size: Accepted; files have Python's buffers.
        header: Whether the first line of each file is left out.
        field_delim: What is between fields: one character.
        use_quote_delim: Whether quotation marks around fields are taken off.
        na_value: A field that counts as empty.
        select_cols: The numbers of the columns to read, in order; None: all.
        exclude_cols: The numbers of those not to read.

    Raises:
        TypeError: A column is none of numbers.
        ValueError: Arguments exclude each other, or there are other numbers of columns.

    Example:
        >>> import pathlib, tempfile
        >>> import mirrored as mr
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
        >>> _ = path.write_text("1,2.5\n2,\n")
        >>> rows = mr.data.experimental.CsvDataset(path, [mr.int32, 0.0])
        >>> [(int(a), float(b)) for a, b in rows]
        [(1, 2.5), (2, 0.0)]
    """

    def __init__(
        self,
        filenames: PathLike | Sequence[PathLike] | DatasetBase[Any],
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        columns = [Column(default) for default in record_defaults]
        if select_cols is not None and exclude_cols is not None:
            raise InvalidArgumentError(
                "Either select_cols or exclude_cols should be specified, not both."
            )
        places = None if select_cols is None else [*select_cols]
        if exclude_cols is not None:
            count = len(columns) + len(exclude_cols)
            places = [place for place in range(count) if place not in exclude_cols]
        compression = compression_of(compression_type)
        form = CsvFormat(compression, header, field_delim, use_quote_delim, na_value)
        rows, files = _reader(columns, places, form), cast(Any, filenames)
        is_dataset = isinstance(filenames, DatasetBase)
        super().__init__((files.flat_map(rows) if is_dataset else rows(files))._transform)


def _reader(
    columns: Sequence[Column], places: Sequence[int] | None, form: CsvFormat
) -> Callable[[Any], Dataset[Any]]:
    """Return what makes a dataset of the rows of files, given their names."""
    if places is not None and (len(places) != len(columns) or places != sorted({*places})):
        raise InvalidArgumentError(
            "`select_cols` must have one column per item of `record_defaults`, in strictly "
            f"increasing order. Received: select_cols={places}, {len(columns)} defaults"
        )
    return lambda names: Dataset(CsvRows(names_of(names, "filenames"), columns, places, form))


@explained
def make_csv_dataset(
    file_pattern: PathLike | Sequence[PathLike],
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset[Any]:
    r"""Return batches of the columns of CSV files, by their names.

    Args:
        file_pattern: A pattern of files, or several in a list.
        batch_size: How many rows a batch joins.
        column_names: The names of all columns; None: those of the first line.
        column_defaults: As for `CsvDataset`, for the columns that are read; None: what the first
            rows tell.
        label_name: The column that is the target; None: there is none.
        select_columns: The names or numbers of the columns to read; None: all.
        field_delim: What is between fields.
        use_quote_delim: Whether quotation marks around fields are taken off.
        na_value: A field that counts as empty.
        header: Whether the first line of each file has names.
        num_epochs: How many times to go over the rows; None: without end.
        shuffle: Whether rows, and files, come in random order.
        shuffle_buffer_size: How many rows the buffer of the order holds.
        shuffle_seed: The seed of the order; None takes one from the global seed.
        prefetch_buffer_size: How many batches are made ahead; None: 1.
        num_parallel_reads: How many files rows come from alternately; None: 1.
        sloppy: Accepted: the order is always the same.
        num_rows_for_inference: How many rows tell the columns' dtypes; None: all.
        compression_type: "GZIP", "ZLIB", or "" or None for none.
        ignore_errors: Whether to leave out rows that cannot be read.
        encoding: The files' encoding.

    Returns:
        A dataset of dicts of columns, or of pairs of such a dict and the label.

    Raises:
        InvalidArgumentError: No file matches.
        ValueError: A name is none of a column.
        TypeError: A column is none of numbers.

    Example:
        >>> import pathlib, tempfile
        >>> import mirrored as mr
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
        >>> _ = path.write_text("a,b,y\n1,0.5,0\n2,1.5,1\n")
        >>> dataset = mr.data.experimental.make_csv_dataset(
        ...     str(path), 2, label_name="y", num_epochs=1, shuffle=False
        ... )
        >>> features, label = next(iter(dataset))
        >>> features["b"].numpy(), label.numpy()
        (array([0.5, 1.5], dtype=float32), array([0, 1], dtype=int32))
    """
    files = matching(file_pattern)
    compression = compression_of(compression_type)
    form = CsvFormat(compression, header, field_delim, use_quote_delim, na_value, encoding)
    names = _names(files, column_names, form)
    places = _places(names, select_columns)
    if label_name is not None and label_name not in [names[place] for place in places]:
        raise ValueError(
            "`label_name` provided must be one of the columns. Received: "
            f"label_name={label_name!r}, columns {[names[place] for place in places]}"
        )
    if column_defaults is None:
        column_defaults = _inferred(files, names, places, form, num_rows_for_inference)
    elif len(column_defaults) != len(places):
        raise ValueError(
            "`column_defaults` must have one default per column that is read. Received: "
            f"{len(column_defaults)} for {len(places)} columns"
        )

    rows = _reader([Column(default) for default in column_defaults], places, form)
    dataset = Dataset(rows_of_names(files))
    if shuffle:
        dataset = dataset.shuffle(len(files), shuffle_seed)
    cycle = 1 if num_parallel_reads is None else num_parallel_reads
    dataset = dataset.interleave(rows, as_count("num_parallel_reads", cycle, least=1))
    if ignore_errors:
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None)
    titles = [names[place] for place in places]

    def named(*columns: Any) -> Any:
        features = dict(zip(titles, columns, strict=True))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label

    return dataset.map(named).prefetch(1 if prefetch_buffer_size is None else prefetch_buffer_size)


def _names(files: list[str], column_names: Sequence[str] | None, form: CsvFormat) -> list[str]:
    """Return the names of all columns."""
    if column_names is None and not form.header:
        raise ValueError("Cannot infer column names without a header line. Pass `column_names`.")
    names = [] if column_names is None else [*column_names]
    for name in files if form.header else ():
        with closing(form.rows(name)) as rows:
            header = next(rows, [])
        try:
            "".join(header).encode()  # Which surrogates are an error of.
        except UnicodeEncodeError as error:
            raise ValueError(
                f"The column names of {name} are no text in {form.encoding}. Received: {header}. "
                "Pass the file's `encoding`."
            ) from error
        if not names:
            names = header
        if column_names is None and header != names:
            raise ValueError(
                f"All input CSV files must have the same column names in the header row. File "
                f"{name} has different column names: {header}, not {names}."
            )
    if len({*names}) != len(names):
        raise ValueError(f"Cannot have duplicate column names. Received: {names}")
    return names


def _places(names: list[str], chosen: Sequence[Any] | None) -> list[int]:
    """Return the numbers of the columns that are read."""
    if chosen is None:
        return [*range(len(names))]
    unknown = [column for column in chosen if not isinstance(column, int) and column not in names]
    if unknown:
        raise ValueError(
            f"Value '{unknown[0]}' in `select_columns` is none of the columns. Received: columns "
            f"{names}"
        )
    return sorted(column if isinstance(column, int) else names.index(column) for column in chosen)


def _inferred(
    files: list[str], names: list[str], places: list[int], form: CsvFormat, most: int | None
) -> list[Any]:
    """Return a default per column, of the narrowest dtype that holds the fields of some records.

    The dtypes are tried in TensorFlow's order.
    """
    ranks = [0] * len(places)
    records = itertools.chain.from_iterable(map(form.records, files))
    for fields in itertools.islice(records, None if most is None else max(most, 0)):
        for number, place in enumerate(places):
            field = fields[place] if place < len(fields) else ""
            while field not in ("", form.missing) and not _fits(field, ranks[number]):
                ranks[number] += 1
                if ranks[number] == len(_INFERRED):
                    raise TypeError(
                        f"Columns of CSV files must be numbers. Received: {field!r:.200} in the "
                        f"column {names[place]!r}. Leave it out by `select_columns`, or map its "
                        "strings to numbers with pandas."
                    )
    return [np.zeros((), _INFERRED[rank])[()] for rank in ranks]


def _fits(field: str, number: int) -> bool:
    """Return whether a dtype holds a field."""
    dtype = _INFERRED[number]
    try:
        value = _parsed(field, dtype)
    except ValueError:
        return False
    return dtype != float32 or not np.isfinite(value) or abs(value) <= np.finfo(dtype).max
