/**
 * Tools that Anthropic names but the client runs ("client tools" of the Messages API). Their schemas are built into
 * Claude, so requests carry none; another model must be told. Arguments as in Anthropic's tool reference and the input
 * types of `@anthropic-ai/sdk` 1.11 (`BetaMemoryTool20250818*Command`); descriptions are ours.
 */
export interface ClientTool {
  readonly description: string
  readonly parameters: object
}

const text = (description: string) => ({ type: 'string', description })
const integer = (description: string) => ({ type: 'integer', description })
const point = (description: string) => ({
  type: 'array',
  items: { type: 'integer' },
  minItems: 2,
  maxItems: 2,
  description,
})
const oneOf = (values: readonly string[], description: string) => ({ type: 'string', enum: values, description })

function tool(description: string, properties: object, required: readonly string[]): ClientTool {
  return { description, parameters: { type: 'object', properties, required } }
}

const bash = tool(
  'Runs a command in a persistent bash session and gives its output.',
  { command: text('The command. Required unless restart is true.'), restart: { type: 'boolean' } },
  [],
)

function editor(commands: readonly string[], insertText: 'new_str' | 'insert_text'): ClientTool {
  return tool(
    'Views and edits text files.',
    {
      command: oneOf(commands, 'What to do.'),
      path: text('Absolute path of the file or directory.'),
      view_range: {
        ...point('view: first and last line, from 1; -1 as last means to the end.'),
      },
      file_text: text('create: the content of the new file.'),
      old_str: text('str_replace: the text to replace; it must occur exactly once.'),
      new_str: text(
        insertText === 'new_str' ? 'str_replace, insert: the new text.' : 'str_replace: the text that replaces it.',
      ),
      ...(insertText === 'insert_text' ? { insert_text: text('insert: the text to insert.') } : {}),
      insert_line: integer('insert: the line after which the text goes; 0 is the beginning of the file.'),
    },
    ['command', 'path'],
  )
}

const memory = tool(
  'Keeps notes in files under /memories that last beyond this conversation.',
  {
    command: oneOf(['view', 'create', 'str_replace', 'insert', 'delete', 'rename'], 'What to do.'),
    path: text('The file or directory, under /memories.'),
    view_range: point('view: first and last line, from 1.'),
    file_text: text('create: the content of the file.'),
    old_str: text('str_replace: the text to replace.'),
    new_str: text('str_replace: the text that replaces it.'),
    insert_line: integer('insert: the line after which the text goes.'),
    insert_text: text('insert: the text to insert.'),
    old_path: text('rename: the path as it is.'),
    new_path: text('rename: the path as it shall be.'),
  },
  ['command'],
)

const pointing = ['left_click', 'right_click', 'middle_click', 'double_click', 'triple_click', 'mouse_move']
const holding = ['left_mouse_down', 'left_mouse_up', 'left_click_drag', 'hold_key', 'scroll', 'wait']
const baseActions = ['key', 'type', 'screenshot', 'cursor_position']

function computer(actions: readonly string[], zoom: boolean): ClientTool {
  return tool(
    'Uses the screen, mouse and keyboard of a computer. Coordinates are pixels of the last screenshot.',
    {
      action: oneOf(actions, 'What to do.'),
      coordinate: point('x and y.'),
      start_coordinate: point('left_click_drag: where the drag begins.'),
      text: text('type: the text. key, hold_key: the keys, joined by +. Clicks and scroll: a key held meanwhile.'),
      scroll_direction: oneOf(['up', 'down', 'left', 'right'], 'scroll: the direction.'),
      scroll_amount: integer('scroll: the number of clicks of the wheel.'),
      duration: { type: 'number', description: 'wait, hold_key: seconds.' },
      ...(zoom
        ? {
            region: {
              type: 'array',
              items: { type: 'integer' },
              minItems: 4,
              maxItems: 4,
              description: 'zoom: left, top, right and bottom of the part to show.',
            },
          }
        : {}),
    },
    ['action'],
  )
}

const editing = ['view', 'create', 'str_replace', 'insert']

/** By the `type` of the tool in a request. */
export const clientTools: Readonly<Record<string, (tool: { readonly zoom: boolean }) => ClientTool>> = {
  bash_20241022: () => bash,
  bash_20250124: () => bash,
  text_editor_20241022: () => editor([...editing, 'undo_edit'], 'new_str'),
  text_editor_20250124: () => editor([...editing, 'undo_edit'], 'new_str'),
  text_editor_20250429: () => editor(editing, 'new_str'),
  text_editor_20250728: () => editor(editing, 'insert_text'),
  memory_20250818: () => memory,
  computer_20250124: () => computer([...baseActions, ...pointing, ...holding], false),
  computer_20251124: ({ zoom }) => computer([...baseActions, ...pointing, ...holding, ...(zoom ? ['zoom'] : [])], zoom),
}
