"""Each format by a few lines of its own, and what happens to a line that is broken."""

from pathlib import Path

import pytest

from scheduler.planner import Remedy
from scheduler.simulator.arrivals import UnreadableTraceError
from scheduler.simulator.traces import read_speeds, read_trace, read_trace_lines


def read(text: str, **options):
    return read_trace_lines(text.strip().splitlines(), name="a trace", **options)


def test_philly_is_sorted_by_time_and_its_clusters_are_tenants():
    trace = read("""
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.0,8,23608.0,6214e9
""")
    first, second = trace.arrivals
    assert (first.gpus, first.duration_s, first.tenant) == (8, 2951.0, "6214e9")
    assert second.submitted_at - first.submitted_at == 48 * 60 + 52


def test_helios_leaves_out_cpu_jobs_and_jobs_that_never_ran():
    trace = read("""
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
j1,u1,vc1,16,64,2,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:00:20,2020-04-01 01:00:20,3600,10
j2,u1,vc1,0,4,1,COMPLETED,2020-04-01 00:00:11,2020-04-01 00:00:20,2020-04-01 01:00:20,3600,9
j3,u2,vc2,8,8,1,CANCELLED,2020-04-01 00:00:12,None,2020-04-01 00:01:00,0,48
""")
    (only,) = trace.arrivals
    assert (only.id, only.gpus, only.cpus, only.tenant) == ("j1", 16, 64.0, "vc1")
    assert trace.left_out == 2


def test_acme_counts_memory_by_pod():
    cells = {
        "job_id": "k1",
        "user": "u1",
        "node_num": "2",
        "gpu_num": "16",
        "cpu_num": "240",
        "mem_per_pod_GB": "1000",
        "type": "Pretrain",
        "state": "COMPLETED",
        "submit_time": "2023-07-01 00:00:00+00:00",
        "duration": "600.0",
    }
    trace = read(",".join(cells) + "\n" + ",".join(cells.values()))
    (only,) = trace.arrivals
    assert (only.gpus, only.duration_s, only.tenant) == (16, 600.0, "Pretrain")
    assert only.memory == 2 * 1000 * 10**9


def test_tiresias_is_in_seconds_and_muri_in_milliseconds():
    tiresias = read("""
job_id,num_gpu,submit_time,iterations,model_name,duration,interval
0,8,0,1000,resnet50,771324,0
1,4,237540,1000,resnet50,943226,237540
""")
    assert [each.duration_s for each in tiresias.arrivals] == [771324, 943226]
    muri = read("""
job_id,num_gpu,submit_time,model_name,duration,iteration_time,resource_time_0,priority
0,1,2000,gpt2,133000,433,0.6,1
""")
    (only,) = muri.arrivals
    assert (only.submitted_at, only.duration_s, only.priority) == (2.0, 133.0, 1.0)


def test_openb_has_parts_of_devices_tiers_and_allowed_kinds():
    text = """
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,460,V100M32|V100M16,LS,Running,100,700,200
p1,6000,1024,0,0,,BE,Running,101,700,200
p2,6000,1024,8,1000,G2,BE,Failed,102,700,200
"""
    part, cpu_only, whole = read(text, without_devices=True).arrivals
    assert (part.share, part.tier, part.duration_s) == (0.46, "premium", 500.0)
    assert part.device_kinds == ("V100M16", "V100M32")
    assert part.memory == 16384 * 2**20
    assert (cpu_only.gpus, whole.gpus, whole.share, whole.tier) == (0, 8, 1.0, "basic")
    trace = read(text)
    assert ([each.id for each in trace.arrivals], trace.left_out) == (["p0", "p2"], 1)


def test_gavel_needs_speeds_and_synergy_seconds_an_iteration(tmp_path: Path):
    speeds = tmp_path / "speeds.csv"
    speeds.write_text("job_type,gpus,steps_per_s\nLM (batch size 5),4,20\n")
    line = "LM (batch size 5)\tcd x && python3 main.py\t--steps\t1\t4000\t70024.5\t4"
    gavel = read(line, speeds=read_speeds(speeds))
    assert (gavel.arrivals[0].duration_s, gavel.arrivals[0].gpus) == (200.0, 4)
    assert read(line).arrivals[0].duration_s == 400.0

    synergy = read("0,alexnet,8,100,1\n1,bert,9,50,1", iteration_s={"alexnet": 0.5})
    assert [each.duration_s for each in synergy.arrivals] == [50.0, 50.0]
    assert synergy.arrivals[1].model == "bert"


def test_three_columns_are_enough_for_a_file_of_ones_own(tmp_path: Path):
    path = tmp_path / "mine.csv"
    path.write_text("submit_time,duration,gpus\n0,60,1\n2026-01-01T00:00:00,60,2\n")
    trace = read_trace(path)
    assert [each.gpus for each in trace.arrivals] == [1, 2]
    assert trace.name == "mine"


def test_every_column_of_a_file_of_ones_own():
    trace = read("""
job_id,submit_time,duration,gpus,replicas,fewest_gpus,tenant,tier,device_kinds,partition,cpus,\
memory_gb,image_gb,remedy,expected_s,priority,model
night,12.5,600,8,4,2,vision,premium,A100|H100,research,64,512,20,requeue,900,3,resnet50
""")
    (job,) = trace.arrivals
    assert (job.id, job.replicas, job.fewest_gpus) == ("night", 4, 2)
    assert (job.tenant, job.tier, job.partition) == ("vision", "premium", "research")
    assert job.device_kinds == ("A100", "H100")
    assert (job.cpus, job.memory, job.image) == (64.0, 512 * 10**9, 20 * 10**9)
    assert (job.remedy, job.expected_s, job.priority) == (Remedy.REQUEUE, 900.0, 3.0)
    assert job.model == "resnet50"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("0,sixty,1", "duration is not a number: 'sixty'"),
        ("0,-5,1", "duration must be a number of at least 0, not -5"),
        ("0,60,1.5", "gpus must be a whole number, not 1.5"),
        ("yesterday,60,1", "submit_time is neither seconds nor a date: 'yesterday'"),
        ("0,60", "2 cells where the format has 3"),
        (",60,1", "submit_time is empty"),
        ("0,nan,1", "duration must be a number of at least 0, not nan"),
    ],
)
def test_a_broken_line_is_told_by_number_and_refused_when_asked(line: str, complaint: str):
    text = f"submit_time,duration,gpus\n0,60,1\n{line}\n5,60,1"
    trace = read(text)
    assert len(trace.arrivals) == 2
    assert [str(each) for each in trace.broken] == [f"line 3: {complaint}"]
    with pytest.raises(UnreadableTraceError, match="line 3"):
        read(text, strict=True)


def test_values_that_no_job_can_have_are_refused():
    text = "submit_time,duration,gpus,replicas,fewest_gpus,gpu_share,remedy\n"
    trace = read(text + "0,1,8,3,,,\n0,1,4,,8,,\n0,1,2,,,0.5,\n0,1,1,,,,hope")
    assert [each.number for each in trace.broken] == [2, 3, 4, 5]
    assert "evenly over 3" in trace.broken[0].why
    assert "hope" in trace.broken[3].why


def test_an_unknown_format_says_what_is_needed():
    with pytest.raises(UnreadableTraceError, match=r"duration, gpus, submit_time"):
        read("when,how_long\n0,1")
    with pytest.raises(UnreadableTraceError, match="no known format"):
        read("a,b", format_name="slurm")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "mine is empty"),
        (b"submit_time;duration;gpus\n0;1;1\n", "with commas between them"),
        (b"submit_time,duration,gpus,tenant\n0,1,1,caf\xe9\n", "no UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_to_mend(
    tmp_path: Path, content: bytes, complaint: str
):
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(UnreadableTraceError, match=complaint):
        read_trace(path)


def test_capitals_and_old_line_ends_do_no_harm_and_a_misspelt_column_is_told(tmp_path: Path):
    path = tmp_path / "mine.csv"
    path.write_bytes(b"\xef\xbb\xbfSubmit_Time, Duration,GPUs,tennant\r0,60,2,vision\r")
    trace = read_trace(path)
    assert [each.gpus for each in trace.arrivals] == [2]
    assert trace.unused == ("tennant",)


def test_a_trace_can_be_cut_and_brought_to_a_load():
    trace = read("submit_time,duration,gpus\n" + "\n".join(f"{n},10,1" for n in range(11)))
    assert len(trace.first(3).arrivals) == 3
    busy = trace.at_load(0.5, 4)
    assert busy.device_seconds / busy.span_s / 4 == pytest.approx(0.5)
