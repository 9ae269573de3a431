"""Works on items with Langroid and a model that answers at once, inside this process.

Takes how many items, and how many at once. Prints how many seconds the call took.
"""

import sys
import time

import langroid as lr
import langroid.language_models as lm
from langroid.agent.batch import run_batch_tasks
from langroid.mytypes import NonToolAction
from langroid.utils.configuration import Settings, set_global


def main(count, parallel):
    # Nothing is printed, streamed or cached: all that would only cost more.
    set_global(Settings(quiet=True, stream=False, cache=False))
    agent = lr.ChatAgent(
        lr.ChatAgentConfig(
            name="echo",
            llm=lm.MockLMConfig(response_fn=lambda text: str(2 * int(text.strip()))),
            handle_llm_no_tool=NonToolAction.DONE,
            show_stats=False,
            vecdb=None,
        )
    )
    quiet = lr.TaskConfig(enable_loggers=False, enable_html_logging=False)
    task = lr.Task(agent, interactive=False, single_round=True, config=quiet)
    began = time.perf_counter()
    answers = run_batch_tasks(
        task,
        list(range(count)),
        input_map=str,
        output_map=lambda answer: int(answer.content),
        sequential=False,
        max_concurrency=parallel,
    )
    seconds = time.perf_counter() - began
    if answers != [2 * item for item in range(count)]:
        sys.exit("some result is wrong")
    print(seconds)


main(int(sys.argv[1]), int(sys.argv[2]))
