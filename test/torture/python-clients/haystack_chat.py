"""Haystack's agent over chat completions, streamed."""
import os

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret


@tool
def shell(command: str) -> str:
    """Runs a command."""
    return f"ran {command}"


generator = OpenAIChatGenerator(
    model=os.environ["MODEL"], api_base_url=os.environ["ROOT"] + "/v1", api_key=Secret.from_token(os.environ["KEY"])
)
agent = Agent(chat_generator=generator, tools=[shell], system_prompt="You tidy.", streaming_callback=lambda chunk: None)
print(agent.run(messages=[ChatMessage.from_user(os.environ["PROMPT"])])["messages"][-1].text)
