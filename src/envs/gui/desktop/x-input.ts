import { type Key, keysOfCombination } from '../actions/index.ts'
import type { InputAction } from '../browser/index.ts'
import type { XDisplay } from './x-display.ts'

const buttons = { left: 1, middle: 2, right: 3 } as const
const wheel = { up: 4, down: 5, left: 6, right: 7 } as const
/** Pixels that browsers scroll for one notch of the wheel. */
const notch = 120

/** Presses of the same millisecond are one and the same to Chromium (ui/events/event.cc, `IsRepeatedClickEvent`). */
const betweenClicksMs = 5

/** Lets the programs take what was done so far. */
type Pause = () => Promise<unknown>

/** Does an action on a desktop by XTEST; resolves when the server has taken it. Between the steps of a drag it pauses. */
export async function doXInput(display: XDisplay, action: InputAction, pause: Pause = none): Promise<void> {
  switch (action.action) {
    case 'click':
      click(display, action, buttons.left, 1)
      break
    case 'double_click':
      click(display, action, buttons.left, 2)
      break
    case 'triple_click':
      click(display, action, buttons.left, 3)
      break
    case 'right_click':
      click(display, action, buttons.right, 1)
      break
    case 'middle_click':
      click(display, action, buttons.middle, 1)
      break
    case 'move':
      display.move(action.x, action.y)
      break
    case 'drag':
      await drag(display, action, pause)
      break
    case 'scroll': {
      const held = keysOf(action.keys)
      hold(display, held, true)
      display.move(action.x, action.y)
      turn(display, action.dy > 0 ? wheel.down : wheel.up, action.dy)
      turn(display, action.dx > 0 ? wheel.right : wheel.left, action.dx)
      hold(display, held, false)
      break
    }
    case 'type':
      await type(display, action.text)
      break
    case 'key': {
      const keys = keysOf(action.keys)
      for (let time = 0; time < action.repeat; time += 1) {
        hold(display, keys, true)
        hold(display, keys, false)
      }
      break
    }
    case 'hold': {
      const keys = keysOf(action.keys)
      hold(display, keys, true)
      await display.sync()
      await new Promise((resolve) => setTimeout(resolve, action.seconds * 1000))
      hold(display, keys, false)
    }
  }
  await display.sync()
}

function click(
  display: XDisplay,
  { x, y, keys }: { readonly x: number; readonly y: number; readonly keys?: string | undefined },
  button: number,
  times: number,
): void {
  const held = keysOf(keys)
  hold(display, held, true)
  display.move(x, y)
  for (let time = 0; time < times; time += 1) {
    display.button(button, true, time === 0 ? 0 : betweenClicksMs)
    display.button(button, false)
  }
  hold(display, held, false)
}

async function type(display: XDisplay, text: string): Promise<void> {
  let rest = Array.from(text)
  while (rest.length > 0) {
    const unknown = [...new Set(rest.filter((character) => !display.knows(character)))]
    const learnt = await display.learn(unknown)
    // As far as there was room for new characters; what no key can be given to is left out.
    const stop = learnt === 0 ? -1 : rest.findIndex((character) => !display.knows(character))
    const part = stop === -1 ? rest : rest.slice(0, stop)
    for (const character of part) display.type(character)
    await display.sync()
    rest = rest.slice(part.length)
  }
}

const none: Pause = () => Promise.resolve()

async function drag(
  display: XDisplay,
  { path, keys }: Extract<InputAction, { action: 'drag' }>,
  pause: Pause,
): Promise<void> {
  const held = keysOf(keys)
  const [from, ...rest] = path
  if (from === undefined) return
  hold(display, held, true)
  display.move(from.x, from.y)
  display.button(buttons.left, true)
  let { x, y } = from
  for (const to of rest) {
    for (const share of [0.34, 0.67, 1]) {
      display.move(x + (to.x - x) * share, y + (to.y - y) * share)
      // Programs drop moves that they find in one piece.
      await display.sync()
      await pause()
    }
    ;({ x, y } = to)
  }
  display.button(buttons.left, false)
  hold(display, held, false)
}

function turn(display: XDisplay, button: number, pixels: number): void {
  const times = pixels === 0 ? 0 : Math.max(1, Math.round(Math.abs(pixels) / notch))
  for (let time = 0; time < times; time += 1) {
    display.button(button, true)
    display.button(button, false)
  }
}

function hold(display: XDisplay, keys: readonly Key[], down: boolean): void {
  for (const key of down ? keys : [...keys].reverse()) display.key(key, down)
}

function keysOf(combination: string | undefined): readonly Key[] {
  return combination === undefined ? [] : (keysOfCombination(combination) ?? [])
}
