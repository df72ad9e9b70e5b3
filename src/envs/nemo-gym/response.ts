/** A call of the environment's tool, and what it came to. */
export interface Said {
  readonly tool: string
  readonly args: Readonly<Record<string, unknown>>
  readonly text: string
}

/** The agent's conversation with the environment as a response of the Responses API, which is what a resources server verifies. */
export function conversation(row: Readonly<Record<string, unknown>>, said: readonly Said[], last: string | null) {
  const { tools = [] } = row['responses_create_params'] as { readonly tools?: readonly unknown[] }
  const calls = said.flatMap(({ tool, args, text }, at) => [
    {
      type: 'function_call',
      call_id: `call_${at + 1}`,
      name: tool,
      arguments: JSON.stringify(args),
      status: 'completed',
    },
    { type: 'function_call_output', call_id: `call_${at + 1}`, output: text },
  ])
  const content = [{ type: 'output_text', text: last ?? '', annotations: [] }]
  const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 0,
    model: 'agent',
    parallel_tool_calls: false,
    tool_choice: 'auto',
    tools,
    output: last === null ? calls : [...calls, message],
  }
}
