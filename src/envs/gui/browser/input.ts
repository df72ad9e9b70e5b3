import type { Action, Key, SingleAction } from '../actions/index.ts'
import { keyOfCharacter, keysOfCombination } from '../actions/index.ts'
import type { GuiPage } from './page.ts'

/** The actions that move pointer and keys; the others only look, wait or end. */
export type InputAction = Extract<
  SingleAction,
  {
    readonly action:
      | 'click'
      | 'double_click'
      | 'triple_click'
      | 'right_click'
      | 'middle_click'
      | 'move'
      | 'drag'
      | 'scroll'
      | 'type'
      | 'key'
      | 'hold'
  }
>

const inputs = new Set<Action['action']>([
  'click',
  'double_click',
  'triple_click',
  'right_click',
  'middle_click',
  'move',
  'drag',
  'scroll',
  'type',
  'key',
  'hold',
])

export function isInput(action: Action): action is InputAction {
  return inputs.has(action.action)
}

/**
 * Does an action in a tab, by the events that a person's mouse and keyboard would make (CDP, domain Input). Where the page
 * takes an event only with its next frame, it is busy until then.
 */
export async function doInput(page: GuiPage, action: InputAction): Promise<void> {
  switch (action.action) {
    case 'click':
      return click(page, action, 'left', 1)
    case 'double_click':
      return click(page, action, 'left', 2)
    case 'triple_click':
      return click(page, action, 'left', 3)
    case 'right_click':
      return click(page, action, 'right', 1)
    case 'middle_click':
      return click(page, action, 'middle', 1)
    case 'move':
      return page.hand('Input.dispatchMouseEvent', { type: 'mouseMoved', x: action.x, y: action.y })
    case 'drag':
      return drag(page, action)
    case 'scroll': {
      const { x, y, dx, dy } = action
      return page.hand('Input.dispatchMouseEvent', {
        type: 'mouseWheel',
        x,
        y,
        deltaX: dx,
        deltaY: dy,
        modifiers: bitsOf(keysOf(action.keys)),
      })
    }
    case 'type':
      return type(page, action.text)
    case 'key': {
      const keys = keysOf(action.keys)
      for (let time = 0; time < action.repeat && page.dialog === null; time += 1) await press(page, keys)
      return
    }
    case 'hold': {
      const keys = keysOf(action.keys)
      await down(page, keys)
      await page.when(() => page.dialog !== null, AbortSignal.timeout(action.seconds * 1000))
      return up(page, keys)
    }
  }
}

interface Point {
  readonly x: number
  readonly y: number
}
type Button = 'left' | 'right' | 'middle'

/** CDP's `buttons`: which are down. */
const buttonBit: Readonly<Record<Button, number>> = { left: 1, right: 2, middle: 4 }

function mouse(
  page: GuiPage,
  type: 'mouseMoved' | 'mousePressed' | 'mouseReleased',
  { x, y }: Point,
  o: {
    readonly button?: Button
    readonly buttons?: number
    readonly clickCount?: number
    readonly modifiers?: number
  } = {},
): Promise<void> {
  return page.act('Input.dispatchMouseEvent', { type, x, y, ...o })
}

async function click(
  page: GuiPage,
  { x, y, keys }: Point & { readonly keys?: string | undefined },
  button: Button,
  times: number,
): Promise<void> {
  const held = keysOf(keys)
  const modifiers = bitsOf(held)
  await down(page, held)
  // The browser takes them in their order; each answer waits for a frame of its own.
  const moved = mouse(page, 'mouseMoved', { x, y }, { modifiers })
  for (let clickCount = 1; clickCount <= times && page.dialog === null; clickCount += 1) {
    await Promise.all([
      moved,
      mouse(page, 'mousePressed', { x, y }, { button, buttons: buttonBit[button], clickCount, modifiers }),
      mouse(page, 'mouseReleased', { x, y }, { button, buttons: 0, clickCount, modifiers }),
    ])
  }
  await up(page, held)
}

async function drag(page: GuiPage, { path, keys }: Extract<InputAction, { action: 'drag' }>): Promise<void> {
  const [from] = path
  const to = path.at(-1)
  if (from === undefined || to === undefined) return
  const held = keysOf(keys)
  const modifiers = bitsOf(held)
  await down(page, held)
  await mouse(page, 'mouseMoved', from, { modifiers })
  await mouse(page, 'mousePressed', from, { button: 'left', buttons: 1, clickCount: 1, modifiers })
  for (const point of between(path)) await mouse(page, 'mouseMoved', point, { button: 'left', buttons: 1, modifiers })
  await mouse(page, 'mouseReleased', to, { button: 'left', buttons: 0, clickCount: 1, modifiers })
  await up(page, held)
}

/** Points between, since pages take a drag only for one after several moves. */
function between(path: readonly Point[]): readonly Point[] {
  const steps = path.length > 2 ? 2 : 4
  return path.slice(1).flatMap((to, at) => {
    const from = path[at] ?? to
    return Array.from({ length: steps }, (_, step) => {
      const share = (step + 1) / steps
      return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
    })
  })
}

async function type(page: GuiPage, text: string): Promise<void> {
  for (const character of text) {
    if (page.dialog !== null) return
    const key = keyOfCharacter(character)
    if (key === null) await page.act('Input.insertText', { text: character })
    else await press(page, [key])
  }
}

async function press(page: GuiPage, keys: readonly Key[]): Promise<void> {
  await Promise.all([down(page, keys), up(page, keys)])
}

/** Sent at once, in this order; the browser takes them in the order in which they were sent. */
async function down(page: GuiPage, keys: readonly Key[]): Promise<void> {
  await Promise.all(
    keys.map((key, at) => {
      const modifiers = bitsOf(keys.slice(0, at + 1))
      // With Ctrl, Alt or Meta down a key types nothing; Shift alone lets it type.
      const text = (modifiers & ~8) === 0 ? key.text : null
      const command = modifiers === 2 ? editing[key.key.toLowerCase()] : undefined
      return page.act('Input.dispatchKeyEvent', {
        type: text === null ? 'rawKeyDown' : 'keyDown',
        ...named(key),
        modifiers,
        ...(text === null ? {} : { text }),
        ...(command === undefined ? {} : { commands: [command] }),
      })
    }),
  )
}

async function up(page: GuiPage, keys: readonly Key[]): Promise<void> {
  await Promise.all(
    [...keys.entries()]
      .reverse()
      .map(([at, key]) =>
        page.act('Input.dispatchKeyEvent', { type: 'keyUp', ...named(key), modifiers: bitsOf(keys.slice(0, at)) }),
      ),
  )
}

function named({ key, code, keyCode }: Key) {
  return { key, code, windowsVirtualKeyCode: keyCode }
}

/** Editing that a browser window, and not the page, does for these keys with Ctrl; headless has no window. */
const editing: Readonly<Record<string, string>> = {
  a: 'selectAll',
  c: 'copy',
  x: 'cut',
  v: 'paste',
  z: 'undo',
  y: 'redo',
}

function keysOf(combination: string | undefined): readonly Key[] {
  return combination === undefined ? [] : (keysOfCombination(combination) ?? [])
}

function bitsOf(keys: readonly Key[]): number {
  return keys.reduce((bits, key) => bits | key.modifier, 0)
}
