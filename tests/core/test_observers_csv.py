"""log.csv: one header, one width, rising updates, cut back on resume."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from omnirl.observers.csv_log import CsvLog, read_rows

COLUMNS = ("wall_time", "updates", "env_steps", "train_return", "note")


def row(updates: int, **values):
    return {"wall_time": 1.5, "updates": updates, "env_steps": 10 * updates, **values}


@pytest.fixture
def started(run_info):
    """A log that has been told of a run: ``started(folder, log_name="log", **changes)``."""

    def start(folder: Path, log_name="log", **changes) -> CsvLog:
        log = CsvLog()
        config = {"runner": {"log_name": log_name}}
        log.run_started(run_info(folder, config=config, **{"columns": COLUMNS, **changes}))
        return log

    return start


def updates_of(path: Path) -> list[int]:
    return [int(line["updates"]) for line in read_rows(path)]


def test_a_row_is_on_file_as_soon_as_it_is_written(tmp_path, started):
    log = started(tmp_path)
    log.metrics(row(1, train_return=20.5))
    log.metrics(row(2))
    assert (tmp_path / "log.csv").read_text() == (
        "wall_time,updates,env_steps,train_return,note\n1.5,1,10,20.5,\n1.5,2,20,,\n"
    )


def test_the_file_is_named_by_the_configuration(tmp_path, started):
    started(tmp_path, log_name="progress")
    assert [path.name for path in tmp_path.iterdir()] == ["progress.csv"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1 / 3, "0.3333333333333333"),
        (np.float64(0.1), "0.1"),
        (np.float32(0.5), "0.5"),
        (np.int64(7), "7"),
        (1e-05, "1e-05"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (None, ""),
        ("a,b", '"a,b"'),
        ("two\nlines", "two lines"),
    ],
)
def test_figures_read_back_equal(tmp_path, value, text, started):
    log = started(tmp_path)
    log.metrics(row(1, note=value))
    assert (tmp_path / "log.csv").read_text().splitlines()[1] == f"1.5,1,10,,{text}"


def test_equal_rows_give_equal_text(tmp_path, started):
    texts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        log = started(tmp_path / name)
        log.metrics(row(1, train_return=0.1 + 0.2))
        texts.append((tmp_path / name / "log.csv").read_bytes())
    assert texts[0] == texts[1]
    assert b",0.30000000000000004" in texts[0]


@pytest.mark.parametrize("updates", [3, 2])
def test_updates_must_rise(tmp_path, updates, started):
    log = started(tmp_path)
    log.metrics(row(3))
    with pytest.raises(ValueError, match=f"row of update {updates} after that of update 3"):
        log.metrics(row(updates))
    assert updates_of(tmp_path / "log.csv") == [3]


def test_a_figure_without_a_column_is_refused(tmp_path, started):
    log = started(tmp_path)
    with pytest.raises(ValueError, match="no column loss"):
        log.metrics(row(1, loss=0.5))
    assert updates_of(tmp_path / "log.csv") == []


def test_a_fresh_start_empties_the_file(tmp_path, started):
    (tmp_path / "log.csv").write_text("anything\n1\n")
    started(tmp_path)
    assert (tmp_path / "log.csv").read_text() == ",".join(COLUMNS) + "\n"


def test_a_resume_cuts_the_file_back_and_keeps_one_header(tmp_path, started):
    first = started(tmp_path)
    for updates in (10, 20, 30, 40):
        first.metrics(row(updates, train_return=updates / 3))
    kept = (tmp_path / "log.csv").read_bytes().splitlines(keepends=True)[:3]
    second = started(tmp_path, resumed_from=25)
    assert (tmp_path / "log.csv").read_bytes() == b"".join(kept)
    second.metrics(row(26))
    assert updates_of(tmp_path / "log.csv") == [10, 20, 26]
    assert (tmp_path / "log.csv").read_text().count("updates") == 1


def test_a_resume_keeps_the_row_of_the_checkpoint_itself(tmp_path, started):
    first = started(tmp_path)
    first.metrics(row(10))
    first.metrics(row(20, train_return=7.5))
    kept = (tmp_path / "log.csv").read_bytes()
    second = started(tmp_path, resumed_from=20)
    second.metrics(row(20))  # it waited for an evaluation when the run was saved
    assert (tmp_path / "log.csv").read_bytes() == kept
    second.metrics(row(30))
    second.rewound(10)
    second.metrics(row(20))
    with pytest.raises(ValueError, match="after that of update 20"):
        second.metrics(row(20))
    assert updates_of(tmp_path / "log.csv") == [10, 20]


@pytest.mark.parametrize(
    "tail",
    [
        "1.5,3",  # cut within a row
        "1.5,3,30,9.0,",  # the whole row but its line end: its last figure may be cut
        "1.5,3\n",  # too narrow
        "1.5,3,30,,,,\n",  # too wide
        "1.5,x,30,,\n",  # no update number
        '1.5,3,30,"9.0,\n',  # an open quote
        "\0\0\0\0\n",  # what a crash of the machine leaves
    ],
)
def test_a_torn_last_line_is_dropped(tmp_path, tail, started):
    first = started(tmp_path)
    first.metrics(row(1))
    first.metrics(row(2))
    whole = (tmp_path / "log.csv").read_bytes()
    (tmp_path / "log.csv").write_bytes(whole + tail.encode())
    second = started(tmp_path, resumed_from=50)
    assert (tmp_path / "log.csv").read_bytes() == whole
    second.metrics(row(51))
    assert updates_of(tmp_path / "log.csv") == [1, 2, 51]


def test_a_resume_without_a_log_begins_one(tmp_path, started):
    log = started(tmp_path, resumed_from=50)
    log.metrics(row(51))
    assert updates_of(tmp_path / "log.csv") == [51]


def test_a_log_without_a_header_is_replaced(tmp_path, started):
    (tmp_path / "log.csv").write_text("")
    log = started(tmp_path, resumed_from=5)
    log.metrics(row(6))
    assert (tmp_path / "log.csv").read_text().splitlines()[0] == ",".join(COLUMNS)


def test_rewinding_drops_rows_and_goes_on(tmp_path, started):
    log = started(tmp_path)
    for updates in (10, 20, 30):
        log.metrics(row(updates))
    log.rewound(20)
    assert updates_of(tmp_path / "log.csv") == [10, 20]
    log.metrics(row(21))
    assert updates_of(tmp_path / "log.csv") == [10, 20, 21]


def test_rewinding_to_the_beginning_leaves_the_header(tmp_path, started):
    log = started(tmp_path)
    log.metrics(row(10))
    log.rewound(0)
    assert (tmp_path / "log.csv").read_text() == ",".join(COLUMNS) + "\n"
    log.metrics(row(1))
    assert updates_of(tmp_path / "log.csv") == [1]


def test_new_columns_are_added_to_old_rows_by_name(tmp_path, started):
    old = started(tmp_path, columns=("updates", "env_steps"))
    old.metrics({"updates": 1, "env_steps": 10})
    started(tmp_path, resumed_from=1, columns=("updates", "loss", "env_steps"))
    assert (tmp_path / "log.csv").read_text() == "updates,loss,env_steps\n1,,10\n"
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_a_log_with_columns_that_are_gone_is_kept_beside(tmp_path, started):
    old = started(tmp_path, columns=("updates", "loss"))
    old.metrics({"updates": 1, "loss": 0.5})
    before = (tmp_path / "log.csv").read_bytes()
    started(tmp_path, resumed_from=1, columns=("updates", "env_steps"))
    assert (tmp_path / "log-until-1.csv").read_bytes() == before
    assert (tmp_path / "log.csv").read_text() == "updates,env_steps\n1,\n"


def test_a_damaged_log_is_kept_beside(tmp_path, started):
    (tmp_path / "log.csv").write_bytes(b"\0\xff\x00 no log at all\n")
    started(tmp_path, resumed_from=3)
    assert (tmp_path / "log-until-3.csv").read_bytes() == b"\0\xff\x00 no log at all\n"
    assert (tmp_path / "log.csv").read_text() == ",".join(COLUMNS) + "\n"


def test_what_a_killed_process_left_is_removed(tmp_path, started):
    (tmp_path / ".log.csv.4711.partial").write_text("half a")
    started(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_flush_waits_for_the_disk(tmp_path, monkeypatch, started):
    log = started(tmp_path)
    log.metrics(row(1))
    synced = []
    monkeypatch.setattr("os.fsync", synced.append)
    log.flush()
    assert len(synced) == 1


def test_a_failed_rewrite_leaves_the_log_as_it_was(tmp_path, monkeypatch, started):
    first = started(tmp_path)
    first.metrics(row(1))
    first.metrics(row(2))
    before = (tmp_path / "log.csv").read_bytes()

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        started(tmp_path, resumed_from=1)
    assert (tmp_path / "log.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]


def test_the_end_closes_the_file(tmp_path, started):
    log = started(tmp_path)
    log.metrics(row(1))
    log.run_finished(SimpleNamespace())
    with pytest.raises(ValueError, match="not open"):
        log.metrics(row(2))
    with (tmp_path / "log.csv").open() as file:
        assert len(list(csv.reader(file))) == 2


def test_reading_passes_over_rows_that_do_not_rise(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("updates,env_steps\n1,10\n5,50\n3,30\n5,50\n6,60\n")
    assert updates_of(path) == [1, 5, 6]
    assert list(read_rows(tmp_path / "none.csv")) == []
