"""Schedules side by side, and the diagnosis of one; expected numbers are counted by hand in the small schedule of `schedules`."""

from dataclasses import replace

from tcptune.ir.schedule import CORE, DMA, MAIN, VECTOR, Buffer, Lifetime, Operation, Schedule
from tcptune.model.practice import BUSY, LEVERS, MOVEMENT, SERIAL
from tcptune.reports.diagnosis import diagnose
from tcptune.reports.schedule_analysis import analyse, named, source_line
from tcptune.reports.schedule_comparison import Comparison, peak_bytes, schedule_hash
from tests.reports.schedules import LIFETIMES, SCHEDULE

FASTER = Schedule(
    tuple(replace(o, begin=o.begin - 50, end=o.end - 50) if o.begin >= 450 else o for o in SCHEDULE.operations if o.id != "stage"),
    LIFETIMES[:1],
)


def test_peaks_count_what_is_alive_at_once():
    assert peak_bytes(SCHEDULE.lifetimes) == {"Sram": 512 + 256}
    apart = (LIFETIMES[0], replace(LIFETIMES[1], begin=LIFETIMES[0].end))
    assert peak_bytes(apart) == {"Sram": 512}
    assert peak_bytes((*apart, Lifetime(Buffer("w", "Trf", 64), 0, 0, 5))) == {"Sram": 512, "Trf": 64}


def test_totals_and_operations_stand_side_by_side():
    comparison = Comparison.of({"old": SCHEDULE, "new": FASTER})
    totals = {row["row"]: (row["old"], row["new"]) for row in comparison.totals()}
    assert totals["makespan (cycles)"] == (1000, 950)
    assert totals["SubContext busy (cycles)"] == (100, 0)
    assert totals["DmaEngine busy (cycles)"] == (200 + 150 + 200, 200 + 150 + 200)
    assert totals["Sram peak (bytes a slice)"] == (768, 512)
    operations = {row["row"]: (row["old"], row["new"]) for row in comparison.operations()}
    assert operations["stage"] == (100, None)
    assert operations["contract"] == (250, 250)
    text = comparison.to_text()
    assert "-50" in text
    assert "gone" in text
    assert "the same schedule" not in text


def test_equal_schedules_are_named_and_names_do_not_make_a_difference():
    renamed = Schedule(tuple(replace(o, id=f"x{n}", description="other") for n, o in enumerate(SCHEDULE.operations)))
    assert schedule_hash(renamed) == schedule_hash(SCHEDULE) != schedule_hash(FASTER)
    assert "the same schedule: a, b" in Comparison.of({"a": SCHEDULE, "b": renamed}).to_text()


def test_the_diagnosis_adds_up_to_the_makespan():
    """Load a 200, load b 150 and the store 200 move, the contraction is 250; launch 100 and sync 100 are fixed."""
    found = diagnose(analyse(SCHEDULE))
    assert (found.movement, found.tensor_unit, found.fixed) == (550, 250, 200)
    assert found.finding == MOVEMENT
    assert found.to_json()["lever"] == LEVERS[MOVEMENT]


def test_the_finding_is_what_takes_the_most_of_the_critical_path():
    load = Operation("load", "DmaLoad", (DMA,), 0, 10, writes=("x",), cause="start")
    long = Operation("pass", "Main", (MAIN, VECTOR), 10, 910, reads=("x",), writes=("y",), cause="data", blocker="load")
    sync = Operation("sync", "Core", (CORE,), 910, 1000, cause="data", blocker="pass")
    assert diagnose(analyse(Schedule((load, long, sync)))).finding == BUSY
    short = replace(long, end=60)
    waiting = replace(sync, begin=60, end=1000)
    assert diagnose(analyse(Schedule((load, short, waiting)))).finding == SERIAL
    assert diagnose(analyse(Schedule(()))) is None


def test_operations_of_a_file_are_called_by_what_they_write():
    numbered = Schedule(
        (
            Operation("0", "DmaLoad", (DMA,), 0, 10, "--> k.rs:3:5\n\na\n    .to_dm()", writes=("a_dm",)),
            Operation("1", "DmaLoad", (DMA,), 10, 20, writes=("a_dm",), blocker="0"),
            Operation("2", "DmaStore", (DMA,), 20, 30, reads=("a_dm",), writes=("T1000",)),
            Operation("3", "DmaStore", (DMA,), 30, 40, writes=("T1001",)),
            Operation("ExplicitSync(3)", "Core", (CORE,), 40, 50),
        )
    )
    assert [o.id for o in named(numbered).operations] == ["a_dm", "a_dm (2)", "DmaStore of a_dm", "DmaStore", "ExplicitSync"]
    assert named(numbered).operations[1].blocker == "a_dm"
    assert source_line(numbered.operations[0]) == "k.rs:3:5 a .to_dm()"


def test_operations_under_other_names_stand_in_the_row_of_what_they_are():
    """The same schedule with every name changed, its HBM tensors known by number only: no row is gone or only in one."""

    def other(name):
        return f"T{1000 + ord(name[0])}" if name in ("a", "b", "out") else f"their_{name}"

    changed = Schedule(
        tuple(
            replace(o, id=f"op {n}", blocker="", reads=tuple(map(other, o.reads)), writes=tuple(map(other, o.writes)))
            for n, o in enumerate(SCHEDULE.operations)
        )
    )
    rows = Comparison.of({"ours": SCHEDULE, "theirs": changed}).operations()
    expected = {o.id: o.duration_cycles for o in SCHEDULE.operations if o.duration_cycles}
    assert {row["row"]: row["ours"] for row in rows} == expected
    assert {row["row"]: row["theirs"] for row in rows} == expected


def test_operations_that_read_other_tensors_are_not_one():
    load = Operation("x", "DmaLoad", (DMA,), 0, 10, writes=("x",))
    wide = Operation("y", "DmaLoad", (DMA,), 10, 20, writes=("y",))
    mine = Schedule((load, wide, Operation("store x", "DmaStore", (DMA,), 20, 30, reads=("x",), writes=("out",))))
    theirs = Schedule((load, wide, Operation("store y", "DmaStore", (DMA,), 20, 35, reads=("y",), writes=("out",))))
    rows = {row["row"]: (row["mine"], row["theirs"]) for row in Comparison.of({"mine": mine, "theirs": theirs}).operations()}
    assert rows["store x"] == (10, None) and rows["store y"] == (None, 15)
