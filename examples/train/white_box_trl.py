"""TRL owns the loop, Paddock the boxes and the verdict: `GRPOTrainer` on the SQL tasks that `paddock openenv examples/tasks/sql --env sql` serves.

TRL makes an object of `Sql` per rollout, offers its methods as tools, and asks `get_reward` once the model is done.
"""

from __future__ import annotations

from typing import Any

from openenv.core.generic_client import GenericEnvClient


def sql_tasks(url: str) -> type:
    """The environment that `environment_factory` takes, at this address."""

    class Sql:
        def __init__(self) -> None:
            # An answer may have to wait for a box.
            self._env = GenericEnvClient(base_url=url, message_timeout_s=300).sync()
            self._env.connect()

        def reset(self, task: str, **_: Any) -> str:
            start = self._env.reset(task=task)
            return "\n\n".join(part for part in (start.observation["system_prompt"], start.observation["instruction"]) if part)

        def list_tables(self) -> str:
            """
            Lists the tables and views of the database with their numbers of rows.
            """
            return self._call("list_tables", {})

        def execute_sql(self, sql: str) -> str:
            """
            Runs one SQL statement and shows its rows.

            Args:
                sql: The statement.
            """
            return self._call("execute_sql", {"sql": sql})

        def submit_sql(self, sql: str) -> str:
            """
            Hands in the statement that answers the question.

            Args:
                sql: The statement.
            """
            return self._call("submit_sql", {"sql": sql})

        def get_reward(self) -> float | None:
            # None where nobody can tell: TRL leaves it out of mean and deviation.
            return self._env.step({"type": "call_tool", "tool_name": "submit", "arguments": {}}).reward

        def _call(self, tool: str, arguments: dict[str, Any]) -> str:
            seen = self._env.step({"type": "call_tool", "tool_name": tool, "arguments": arguments}).observation
            return seen["error"]["message"] if seen["error"] else seen["result"]["data"]

    return Sql
