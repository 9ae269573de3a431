"""Lists, reads and cancels batch jobs that rowmill made, with the vendors' own clients.

    rowmill simulate --port 8080 --batch-duration 2s
    python scripts/batch_sdks_read.py http://127.0.0.1:8080 target/debug/rowmill

For each provider with a batch API, rowmill submits two runs and leaves. The provider's client finds the jobs of both in its
list and reads them, with their results; it cancels the job of the second. Then rowmill collects the first run, and sends the
rows of the second again. It needs the same packages as batch_sdks.py, and prints one line for each call.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anthropic
import openai
from google import genai
from mistralai.client import Mistral
from together import Together

from batch_sdks import ended, lines_of, told

TEXTS = ["Name a river.", "Name a lake.", "Never. [[400]]"]
KEY_FIELD = "rowmill_job"


class Run:
    """A run of rowmill that has submitted one job and left."""

    def __init__(self, rowmill, base, model):
        self.rowmill, self.model = rowmill, model
        self.folder = tempfile.TemporaryDirectory()
        self.environment = {"HOME": self.folder.name, "TMPDIR": self.folder.name}
        for name, path in [
            ("OPENAI", "/v1"),
            ("ANTHROPIC", ""),
            ("GEMINI", ""),
            ("MISTRAL", "/mistral/v1"),
            ("GROQ", "/groq/openai/v1"),
            ("TOGETHER", "/together/v1"),
            ("AZURE", "/azure/openai/v1"),
        ]:
            self.environment[f"{name}_BASE_URL"] = base + path
            self.environment["AZURE_OPENAI_API_KEY" if name == "AZURE" else f"{name}_API_KEY"] = "k"
        rows = "".join(json.dumps({"t": text}) + "\n" for text in TEXTS)
        Path(self.folder.name, "rows.jsonl").write_text(rows)
        flags = ["-i", "rows.jsonl", "-o", "out.jsonl", "-p", "{{t}}", "-m", model, "--lane", "batch", "--detach"]
        self.command(["run", *flags], [5])
        status = json.loads(self.command(["batch", "status", "--json"], [0]))
        (self.job,) = [job["id"] for job in status["jobs"]]
        told(model, "rowmill run --detach", self.job)

    def command(self, arguments, codes):
        done = subprocess.run(
            [self.rowmill, *arguments], cwd=self.folder.name, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode in codes, (arguments, done.returncode, done.stderr)
        return done.stdout

    def collect(self):
        """Collects until nothing is out, and returns the envelopes."""
        self.command(["batch", "status", "--wait", "--poll-every", "200ms"], [0])
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.command(["batch", "retrieve"], [3, 5])
            output = lines_of(Path(self.folder.name, "out.jsonl").read_text())
            if len(output) == len(TEXTS):
                return output
            time.sleep(0.2)
        raise TimeoutError(f"{self.model}: rows are still out")


def check_ids(ids, expected):
    """The ids of rowmill's requests: 32 hexadecimal digits, a hyphen and the number of the attempt."""
    ids = list(ids)
    assert len(ids) == expected and all(len(id) == 34 and id.endswith("-1") for id in ids), ids


def with_openai(client, first, second):
    """The client of OpenAI, which Azure and Groq share."""
    vendor, batches = first.model, client.batches
    listed = {job.id: job for job in batches.list(limit=1)}
    assert first.job in listed and second.job in listed, listed
    told(vendor, "batches.list", f"{len(listed)} jobs, both runs among them")
    assert listed[first.job].metadata[KEY_FIELD] != listed[second.job].metadata[KEY_FIELD], listed
    told(vendor, "batches.cancel", batches.cancel(second.job).status)
    job = ended(lambda: batches.retrieve(first.job), lambda job: job.completed_at is not None)
    assert job.status == "completed", job
    if job.request_counts and job.request_counts.completed is not None:
        assert (job.request_counts.total, job.request_counts.completed, job.request_counts.failed) == (3, 2, 1), job
    told(vendor, "batches.retrieve", f"{job.status}, {job.endpoint}, {job.metadata[KEY_FIELD]}")
    results = lines_of(client.files.content(job.output_file_id).text)
    errors = lines_of(client.files.content(job.error_file_id).text)
    check_ids((line["custom_id"] for line in results), 2)
    check_ids((line["custom_id"] for line in errors), 1)
    requests = lines_of(client.files.content(job.input_file_id).text)
    check_ids((line["custom_id"] for line in requests), 3)
    told(vendor, "files.content", f"{len(requests)} requests, {len(results)} results, {len(errors)} error")
    cancelled = ended(lambda: batches.retrieve(second.job), lambda job: job.cancelled_at is not None)
    told(vendor, "batches.retrieve", cancelled.status)


def with_anthropic(client, first, second):
    vendor, batches = first.model, client.messages.batches
    listed = [job.id for job in batches.list(limit=1)]
    assert first.job in listed and second.job in listed, listed
    told(vendor, "batches.list", f"{len(listed)} jobs, both runs among them")
    told(vendor, "batches.cancel", batches.cancel(second.job).processing_status)
    job = ended(lambda: batches.retrieve(first.job), lambda job: job.processing_status == "ended")
    assert (job.request_counts.succeeded, job.request_counts.errored) == (2, 1), job
    told(vendor, "batches.retrieve", f"{job.processing_status}, {job.request_counts.succeeded} succeeded")
    results = list(batches.results(first.job))
    check_ids((line.custom_id for line in results), 3)
    told(vendor, "batches.results", ", ".join(sorted(line.result.type for line in results)))
    cancelled = ended(lambda: batches.retrieve(second.job), lambda job: job.processing_status == "ended")
    told(vendor, "batches.retrieve", f"{cancelled.request_counts.canceled} canceled")


def with_gemini(client, first, second):
    vendor, batches = first.model, client.batches
    listed = {job.name: job.display_name for job in batches.list(config={"page_size": 1})}
    assert first.job in listed and second.job in listed, listed
    told(vendor, "batches.list", f"{len(listed)} jobs, both runs among them, {listed[first.job]}")
    batches.cancel(name=second.job)
    told(vendor, "batches.cancel", second.job)
    job = ended(lambda: batches.get(name=first.job), lambda job: job.done)
    assert job.state.name == "JOB_STATE_SUCCEEDED", job
    told(vendor, "batches.get", f"{job.state.name} {job.dest.file_name}")
    results = lines_of(client.files.download(file=job.dest.file_name).decode())
    check_ids((line["key"] for line in results), 3)
    told(vendor, "files.download", f"{len(results)} rows, {sum('error' in line for line in results)} with an error")
    cancelled = ended(lambda: batches.get(name=second.job), lambda job: job.done)
    told(vendor, "batches.get", cancelled.state.name)


def with_mistral(client, first, second):
    vendor, jobs = first.model, client.batch.jobs
    listed = {job.id: job.metadata for job in jobs.list(page=0, page_size=100).data}
    assert first.job in listed and second.job in listed, listed
    told(vendor, "batch.jobs.list", f"{len(listed)} jobs, both runs among them, {listed[first.job][KEY_FIELD]}")
    told(vendor, "batch.jobs.cancel", jobs.cancel(job_id=second.job).status)
    job = ended(lambda: jobs.get(job_id=first.job), lambda job: job.completed_at)
    assert (job.status, job.succeeded_requests, job.failed_requests) == ("SUCCESS", 2, 1), job
    told(vendor, "batch.jobs.get", f"{job.status}, {job.succeeded_requests} of {job.total_requests}")
    results = lines_of(client.files.download(file_id=job.output_file).read().decode())
    errors = lines_of(client.files.download(file_id=job.error_file).read().decode())
    check_ids((line["custom_id"] for line in results + errors), 3)
    told(vendor, "files.download", f"{len(results)} rows and {len(errors)} error")
    told(vendor, "batch.jobs.get", ended(lambda: jobs.get(job_id=second.job), lambda job: job.completed_at).status)


def with_together(client, first, second):
    vendor, batches = first.model, client.batches
    listed = [job.id for job in batches.list()]
    assert first.job in listed and second.job in listed, listed
    told(vendor, "batches.list", f"{len(listed)} jobs, both runs among them")
    told(vendor, "batches.cancel", batches.cancel(second.job).status)
    job = ended(lambda: batches.retrieve(first.job), lambda job: job.completed_at)
    assert (job.status, job.progress) == ("COMPLETED", 100), job
    told(vendor, "batches.retrieve", f"{job.status}, {job.progress} %")
    results = lines_of(client.files.content(job.output_file_id).read().decode())
    errors = lines_of(client.files.content(job.error_file_id).read().decode())
    check_ids((line["custom_id"] for line in results + errors), 3)
    told(vendor, "files.content", f"{len(results)} rows and {len(errors)} error")
    cancelled = ended(lambda: batches.retrieve(second.job), lambda job: job.status == "CANCELLED")
    told(vendor, "batches.retrieve", cancelled.status)


def main():
    base, rowmill = sys.argv[1].rstrip("/"), str(Path(sys.argv[2]).resolve())
    azure = openai.OpenAI(base_url=f"{base}/azure/openai/v1", api_key="k", default_headers={"api-key": "k"})
    for model, client, read in [
        ("openai.m", openai.OpenAI(base_url=f"{base}/v1", api_key="k"), with_openai),
        ("responses.m", openai.OpenAI(base_url=f"{base}/v1", api_key="k"), with_openai),
        ("azure.m", azure, with_openai),
        ("groq.m", openai.OpenAI(base_url=f"{base}/groq/openai/v1", api_key="k"), with_openai),
        ("anthropic.m", anthropic.Anthropic(base_url=base, api_key="k"), with_anthropic),
        ("google.m", genai.Client(api_key="k", http_options={"base_url": base}), with_gemini),
        ("mistral.m", Mistral(api_key="k", server_url=f"{base}/mistral"), with_mistral),
        ("together.m", Together(base_url=f"{base}/together", api_key="k"), with_together),
    ]:
        first, second = Run(rowmill, base, model), Run(rowmill, base, model)
        read(client, first, second)
        for run, what in [(first, "as it was read"), (second, "sent again after the cancel")]:
            envelopes = run.collect()
            assert [line["ok"] for line in envelopes] == [True, True, False], envelopes
            assert envelopes[0]["result"] == "answer to: Name a river.", envelopes
            told(model, "rowmill batch retrieve", f"{len(envelopes)} rows, {what}")
    print("all clients read, listed and cancelled the jobs that rowmill made", flush=True)


if __name__ == "__main__":
    main()
