"""Pydantic AI over the dialect that its argument names, each step streamed."""
import asyncio
import os
import sys

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

root, key, name = (os.environ[word] for word in ("ROOT", "KEY", "MODEL"))
model = {
    "chat": lambda: OpenAIChatModel(name, provider=OpenAIProvider(base_url=root + "/v1", api_key=key)),
    "responses": lambda: OpenAIResponsesModel(name, provider=OpenAIProvider(base_url=root + "/v1", api_key=key)),
    "messages": lambda: AnthropicModel(name, provider=AnthropicProvider(base_url=root, api_key=key)),
    "gemini": lambda: GoogleModel(name, provider=GoogleProvider(base_url=root, api_key=key)),
}[sys.argv[1]]()
agent = Agent(model, system_prompt="You tidy.")


@agent.tool_plain
def shell(command: str) -> str:
    """Runs a command."""
    return f"ran {command}"


async def main() -> None:
    async with agent.iter(os.environ["PROMPT"]) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _event in stream:
                        pass
    print(run.result.output)


asyncio.run(main())
