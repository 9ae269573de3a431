"""Works on rows with Langroid: an agent with one tool, many rows at once.

Takes the address of the model, a file of rows, how many of them, and how many at once.
"""

import json
import sys

import langroid as lr
import langroid.language_models as lm
from langroid.agent.batch import run_batch_tasks
from langroid.mytypes import NonToolAction
from langroid.utils.configuration import Settings, set_global


class Lookup(lr.ToolMessage):
    request: str = "lookup"
    purpose: str = "Looks a part up."
    key: str


class Clerk(lr.ChatAgent):
    # A handler of the tool itself is lost when an agent is cloned for a row; one of the agent is not.
    def lookup(self, message: Lookup) -> str:
        return f"part for {message.key}: 12 in stock"


def rows(path, count):
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for _, line in zip(range(count), lines)]


def main(base_url, path, count, parallel):
    # Nothing is printed, streamed or cached: all that would only cost more.
    set_global(Settings(quiet=True, stream=False, cache=False))
    model = lm.OpenAIGPTConfig(
        chat_model="simulated",
        api_base=base_url,
        api_key="x",
        stream=False,
        cache_config=None,
        chat_context_length=100_000,
    )
    agent = Clerk(
        lr.ChatAgentConfig(
            name="clerk",
            llm=model,
            system_message="You answer customers of a shop. Look the part up before you answer.",
            use_tools=False,
            use_functions_api=True,
            use_tools_api=True,
            handle_llm_no_tool=NonToolAction.DONE,
            show_stats=False,
            vecdb=None,
        )
    )
    agent.enable_message(Lookup)
    quiet = lr.TaskConfig(enable_loggers=False, enable_html_logging=False)
    task = lr.Task(agent, interactive=False, config=quiet)
    answers = run_batch_tasks(
        task,
        rows(path, int(count)),
        input_map=lambda row: f"Is there a spare part for this? {row['review']}",
        output_map=lambda answer: answer.content if answer else None,
        sequential=False,
        max_concurrency=int(parallel),
    )
    given = sum(1 for answer in answers if answer)
    if given != int(count):
        sys.exit(f"{given} answers for {count} rows")


main(*sys.argv[1:])
