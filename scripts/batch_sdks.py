"""Makes, lists, reads and cancels batch jobs with the vendors' own clients.

    rowmill simulate --port 8080 --batch-duration 2s
    python scripts/batch_sdks.py http://127.0.0.1:8080

It needs the packages openai, anthropic, google-genai, mistralai and together, and prints one line for each call. A client
that cannot read what the simulator answers stops it with an error.
"""

import io
import json
import sys
import tempfile
import time
from pathlib import Path

import anthropic
import openai
from google import genai
from mistralai.client import Mistral
from together import Together

PROMPTS = ["Name a river.", "Name a lake.", "Fail once. [[400]]"]
DEADLINE_SECONDS = 60


def told(vendor, call, what):
    print(f"{vendor:10} {call:28} {what}", flush=True)


def ended(read, is_over):
    """Polls until a job is over."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        job = read()
        if is_over(job):
            return job
        time.sleep(0.2)
    raise TimeoutError(f"the job is not over: {job}")


def lines_of(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def chat_body(prompt):
    return {"model": "m", "messages": [{"role": "user", "content": prompt}]}


def openai_rows(endpoint):
    rows = []
    for number, prompt in enumerate(PROMPTS):
        body = chat_body(prompt) if endpoint.endswith("completions") else {"model": "m", "input": prompt}
        rows.append({"custom_id": f"r-{number}", "method": "POST", "url": endpoint, "body": body})
    return "\n".join(json.dumps(row) for row in rows).encode()


def with_openai(vendor, client, endpoint):
    """The client of OpenAI, which Azure and Groq share."""
    uploaded = client.files.create(file=("rows.jsonl", openai_rows(endpoint)), purpose="batch")
    told(vendor, "files.create", f"{uploaded.id} {uploaded.bytes} bytes, {uploaded.status}")
    job = client.batches.create(
        input_file_id=uploaded.id, endpoint=endpoint, completion_window="24h", metadata={"run": "sdk"}
    )
    assert job.status == "validating" and job.metadata == {"run": "sdk"}, job
    told(vendor, "batches.create", f"{job.id} {job.status}")
    job = ended(lambda: client.batches.retrieve(job.id), lambda job: job.completed_at is not None)
    assert job.status == "completed", job
    assert (job.request_counts.total, job.request_counts.completed, job.request_counts.failed) == (3, 2, 1)
    told(vendor, "batches.retrieve", f"{job.status}, {job.request_counts.completed} of {job.request_counts.total}")
    results = lines_of(client.files.content(job.output_file_id).text)
    assert sorted(line["custom_id"] for line in results) == ["r-0", "r-1"], results
    told(vendor, "files.content (output)", f"{len(results)} rows")
    errors = lines_of(client.files.content(job.error_file_id).text)
    assert [line["response"]["status_code"] for line in errors] == [400], errors
    told(vendor, "files.content (errors)", f"{len(errors)} row")
    second = client.batches.create(input_file_id=uploaded.id, endpoint=endpoint, completion_window="24h")
    second = client.batches.cancel(second.id)
    assert second.status == "cancelling", second
    told(vendor, "batches.cancel", second.status)
    second = ended(lambda: client.batches.retrieve(second.id), lambda job: job.cancelled_at is not None)
    told(vendor, "batches.retrieve", second.status)
    listed = [job.id for job in client.batches.list(limit=1)]
    assert listed[:2] == [second.id, job.id], listed
    told(vendor, "batches.list (pages of 1)", f"{len(listed)} jobs")
    files = [file.id for file in client.files.list()]
    assert uploaded.id in files and job.output_file_id in files, files
    told(vendor, "files.list", f"{len(files)} files")
    told(vendor, "files.retrieve", client.files.retrieve(uploaded.id).filename)
    assert client.files.delete(uploaded.id).deleted
    told(vendor, "files.delete", uploaded.id)


def with_anthropic(base):
    vendor = "anthropic"
    client = anthropic.Anthropic(base_url=base, api_key="k")
    rows = [
        {
            "custom_id": f"r-{number}",
            "params": {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": prompt}]},
        }
        for number, prompt in enumerate(PROMPTS)
    ]
    batches = client.messages.batches
    job = batches.create(requests=rows)
    assert job.processing_status == "in_progress" and job.request_counts.processing == 3, job
    told(vendor, "batches.create", f"{job.id} {job.processing_status}")
    job = ended(lambda: batches.retrieve(job.id), lambda job: job.processing_status == "ended")
    assert (job.request_counts.succeeded, job.request_counts.errored) == (2, 1), job
    told(vendor, "batches.retrieve", f"{job.processing_status}, {job.request_counts.succeeded} succeeded")
    results = {line.custom_id: line.result for line in batches.results(job.id)}
    assert results["r-0"].message.content[0].text.startswith("answer to: "), results
    assert results["r-2"].error.error.type == "invalid_request_error", results
    told(vendor, "batches.results", ", ".join(sorted(result.type for result in results.values())))
    second = batches.cancel(batches.create(requests=rows).id)
    assert second.processing_status == "canceling", second
    told(vendor, "batches.cancel", second.processing_status)
    second = ended(lambda: batches.retrieve(second.id), lambda job: job.processing_status == "ended")
    told(vendor, "batches.retrieve", f"{second.request_counts.canceled} canceled")
    listed = [job.id for job in batches.list(limit=1)]
    assert listed[:2] == [second.id, job.id], listed
    told(vendor, "batches.list (pages of 1)", f"{len(listed)} jobs")
    told(vendor, "batches.delete", batches.delete(second.id).type)


def with_gemini(base):
    vendor = "gemini"
    client = genai.Client(api_key="k", http_options={"base_url": base})
    requests = [{"contents": [{"role": "user", "parts": [{"text": prompt}]}]} for prompt in PROMPTS]
    rows = [json.dumps({"key": f"r-{number}", "request": row}) for number, row in enumerate(requests)]
    uploaded = client.files.upload(
        file=io.BytesIO("\n".join(rows).encode()), config={"mime_type": "jsonl", "display_name": "rows"}
    )
    told(vendor, "files.upload", f"{uploaded.name} {uploaded.size_bytes} bytes, {uploaded.state.name}")
    job = client.batches.create(model="m", src=uploaded.name, config={"display_name": "by file"})
    assert job.state.name == "JOB_STATE_PENDING" and job.display_name == "by file", job
    told(vendor, "batches.create (file)", f"{job.name} {job.state.name}")
    job = ended(lambda: client.batches.get(name=job.name), lambda job: job.done)
    assert job.state.name == "JOB_STATE_SUCCEEDED", job
    told(vendor, "batches.get", f"{job.state.name} {job.dest.file_name}")
    results = lines_of(client.files.download(file=job.dest.file_name).decode())
    assert sorted(line["key"] for line in results) == ["r-0", "r-1", "r-2"], results
    told(vendor, "files.download", f"{len(results)} rows, {sum('error' in line for line in results)} with an error")
    inline = client.batches.create(model="m", src=requests, config={"display_name": "inline"})
    told(vendor, "batches.create (inline)", f"{inline.name} {inline.state.name}")
    inline = ended(lambda: client.batches.get(name=inline.name), lambda job: job.done)
    responses = inline.dest.inlined_responses
    assert responses[0].response.text == "answer to: Name a river." and responses[2].error, responses
    told(vendor, "batches.get", f"{inline.state.name}, {len(responses)} inlined responses")
    third = client.batches.create(model="m", src=requests)
    client.batches.cancel(name=third.name)
    told(vendor, "batches.cancel", third.name)
    third = ended(lambda: client.batches.get(name=third.name), lambda job: job.done)
    assert third.state.name == "JOB_STATE_CANCELLED", third
    told(vendor, "batches.get", third.state.name)
    listed = [job.name for job in client.batches.list(config={"page_size": 1})]
    assert listed[:3] == [third.name, inline.name, job.name], listed
    told(vendor, "batches.list (pages of 1)", f"{len(listed)} jobs")
    client.batches.delete(name=third.name)
    told(vendor, "batches.delete", third.name)
    client.files.delete(name=uploaded.name)
    told(vendor, "files.delete", uploaded.name)


def with_mistral(base):
    vendor = "mistral"
    client = Mistral(api_key="k", server_url=f"{base}/mistral")
    rows = [
        {"custom_id": f"r-{number}", "body": {"messages": [{"role": "user", "content": prompt}]}}
        for number, prompt in enumerate(PROMPTS)
    ]
    content = "\n".join(json.dumps(row) for row in rows).encode()
    uploaded = client.files.upload(file={"file_name": "rows.jsonl", "content": content}, purpose="batch")
    told(vendor, "files.upload", f"{uploaded.id} {uploaded.size_bytes} bytes")
    jobs = client.batch.jobs
    endpoint = "/v1/chat/completions"
    job = jobs.create(input_files=[uploaded.id], model="m", endpoint=endpoint, metadata={"run": "sdk"})
    assert job.status == "QUEUED" and job.metadata == {"run": "sdk"}, job
    told(vendor, "batch.jobs.create", f"{job.id} {job.status}")
    job = ended(lambda: jobs.get(job_id=job.id), lambda job: job.completed_at)
    assert (job.status, job.succeeded_requests, job.failed_requests) == ("SUCCESS", 2, 1), job
    told(vendor, "batch.jobs.get", f"{job.status}, {job.succeeded_requests} of {job.total_requests}")
    results = lines_of(client.files.download(file_id=job.output_file).read().decode())
    errors = lines_of(client.files.download(file_id=job.error_file).read().decode())
    assert (len(results), len(errors)) == (2, 1), (results, errors)
    told(vendor, "files.download", f"{len(results)} rows and {len(errors)} error")
    inline = jobs.create(requests=rows, model="m", endpoint=endpoint)
    inline = ended(lambda: jobs.get(job_id=inline.id, inline=True), lambda job: job.completed_at)
    assert len(inline.outputs) == 3, inline
    told(vendor, "batch.jobs.get (inline)", f"{inline.status}, {len(inline.outputs)} outputs")
    third = jobs.cancel(job_id=jobs.create(requests=rows, model="m", endpoint=endpoint).id)
    assert third.status == "CANCELLATION_REQUESTED", third
    told(vendor, "batch.jobs.cancel", third.status)
    third = ended(lambda: jobs.get(job_id=third.id), lambda job: job.completed_at)
    told(vendor, "batch.jobs.get", third.status)
    listed = jobs.list(page=0, page_size=2)
    assert [job.id for job in listed.data] == [third.id, inline.id] and listed.total >= 3, listed
    told(vendor, "batch.jobs.list", f"{len(listed.data)} of {listed.total} jobs")
    told(vendor, "files.list", f"{client.files.list().total} files")
    assert client.files.delete(file_id=uploaded.id).deleted
    told(vendor, "files.delete", uploaded.id)


def with_together(base):
    vendor = "together"
    client = Together(base_url=f"{base}/together", api_key="k")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.jsonl")
        rows = [{"custom_id": f"r-{number}", "body": chat_body(prompt)} for number, prompt in enumerate(PROMPTS)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        uploaded = client.files.upload(file=path, purpose="batch-api", check=False)
    told(vendor, "files.upload", f"{uploaded.id} {uploaded.bytes} bytes")
    endpoint = "/v1/chat/completions"
    job = client.batches.create(input_file_id=uploaded.id, endpoint=endpoint).job
    assert job.status == "VALIDATING", job
    told(vendor, "batches.create", f"{job.id} {job.status}")
    job = ended(lambda: client.batches.retrieve(job.id), lambda job: job.completed_at)
    assert (job.status, job.progress) == ("COMPLETED", 100), job
    told(vendor, "batches.retrieve", f"{job.status}, {job.progress} %")
    results = lines_of(client.files.content(job.output_file_id).read().decode())
    errors = lines_of(client.files.content(job.error_file_id).read().decode())
    assert (len(results), len(errors)) == (2, 1), (results, errors)
    told(vendor, "files.content", f"{len(results)} rows and {len(errors)} error")
    second = client.batches.create(input_file_id=uploaded.id, endpoint=endpoint).job
    told(vendor, "batches.cancel", client.batches.cancel(second.id).status)
    second = ended(lambda: client.batches.retrieve(second.id), lambda job: job.status == "CANCELLED")
    told(vendor, "batches.retrieve", second.status)
    listed = [job.id for job in client.batches.list()]
    assert listed[:2] == [second.id, job.id], listed
    told(vendor, "batches.list", f"{len(listed)} jobs")
    told(vendor, "files.list", f"{len(client.files.list().data)} files")
    client.files.delete(uploaded.id)
    told(vendor, "files.delete", uploaded.id)


def main():
    base = sys.argv[1].rstrip("/")
    with_openai("openai", openai.OpenAI(base_url=f"{base}/v1", api_key="k"), "/v1/chat/completions")
    with_openai("responses", openai.OpenAI(base_url=f"{base}/v1", api_key="k"), "/v1/responses")
    azure = openai.OpenAI(base_url=f"{base}/azure/openai/v1", api_key="k", default_headers={"api-key": "k"})
    with_openai("azure", azure, "/v1/chat/completions")
    with_openai("groq", openai.OpenAI(base_url=f"{base}/groq/openai/v1", api_key="k"), "/v1/chat/completions")
    with_anthropic(base)
    with_gemini(base)
    with_mistral(base)
    with_together(base)


if __name__ == "__main__":
    main()
