"""LlamaIndex's function agent over chat completions, streamed."""
import asyncio
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike


def shell(command: str) -> str:
    """Runs a command."""
    return f"ran {command}"


async def main() -> None:
    model = OpenAILike(
        model=os.environ["MODEL"],
        api_base=os.environ["ROOT"] + "/v1",
        api_key=os.environ["KEY"],
        is_chat_model=True,
        is_function_calling_model=True,
    )
    agent = FunctionAgent(tools=[shell], llm=model, system_prompt="You tidy.", streaming=True)
    print(str(await agent.run(os.environ["PROMPT"])))


asyncio.run(main())
