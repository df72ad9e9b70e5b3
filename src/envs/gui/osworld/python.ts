import { parseCalls } from '../adapters/python-calls.ts'
import { actionAdapters } from '../adapters/index.ts'
import type { SingleAction } from '../actions/index.ts'
import type { Machine } from './machine.ts'

/** What a Python text came to: input on the machine, or what is wrong with it. */
export type ReadPython =
  | { readonly ok: true; readonly steps: readonly PythonStep[] }
  | { readonly ok: false; readonly error: string }

type PythonStep =
  | { readonly kind: 'act'; readonly action: SingleAction }
  | { readonly kind: 'hold'; readonly what: Parameters<Machine['hold']>[0]; readonly down: boolean }
  /** Where the mouse is decides what is meant: known only when it is done. */
  | { readonly kind: 'here'; readonly text: string }

/** Code without what OSWorld's controllers put before all of it, whether it is about the screen or not. */
export function withoutPrefix(code: string): string {
  return code
    .replaceAll(/\bimport\s+pyautogui\s*(?:;|\n|$)/g, '')
    .replaceAll(/\bpyautogui\.(?:FAILSAFE|PAUSE)\s*=\s*[\w.]+\s*;?/g, '')
    .trimStart()
}

/** True for Python that drives the screen: it is read and done here, and never run as Python. */
export function drivesScreen(code: string): boolean {
  return /\bpyautogui\b/.test(withoutPrefix(code))
}

/**
 * Reads `pyautogui` code as OSWorld's controllers write it (desktop_env/controllers/python.py: imports, `FAILSAFE = False`,
 * easing functions, then calls). Only calls with literal arguments are understood. Calls that need the place of the mouse
 * come as `here` and are read again by {@link runPython}.
 */
export function readPython(code: string): ReadPython {
  const plain = withoutPrefix(code)
    .replaceAll(/(^|[;\n])\s*(?:import|from)\s[^\n;]*/g, '$1')
    .replaceAll(/,\s*(?:tween\s*=\s*)?pyautogui\.ease\w+/g, '')
  const parsed = parseCalls(plain)
  if (!parsed.ok) return parsed
  const steps: PythonStep[] = []
  for (const { name, positional, keyword } of parsed.calls) {
    const bare = name.replace(/^pyautogui\./, '')
    const [first] = positional
    if (bare === 'keyDown' || bare === 'keyUp') {
      const key = first ?? keyword.get('key')
      if (typeof key !== 'string') return { ok: false, error: `${name} needs a key in quotes` }
      steps.push({ kind: 'hold', what: { key }, down: bare === 'keyDown' })
    } else if (bare === 'mouseDown' || bare === 'mouseUp') {
      const button = keyword.get('button') ?? 'left'
      if (button !== 'left' && button !== 'middle' && button !== 'right') {
        return { ok: false, error: `${name} needs button='left', 'middle' or 'right'` }
      }
      const [x, y] = [keyword.get('x') ?? first, keyword.get('y') ?? positional[1]]
      if (typeof x === 'number' && typeof y === 'number') {
        steps.push({ kind: 'act', action: { action: 'move', x, y } })
      }
      steps.push({ kind: 'hold', what: { button }, down: bare === 'mouseDown' })
    } else if (bare !== 'moveTo' || positional.length + keyword.size > 0) {
      steps.push({ kind: 'here', text: written(name, positional, keyword) })
    }
  }
  return { ok: true, steps }
}

/** Does what {@link readPython} gave. Null when all was done, else what was wrong with the first that could not be. */
export async function runPython(machine: Machine, code: string): Promise<string | null> {
  const read = readPython(code)
  if (!read.ok) return read.error
  for (const step of read.steps) {
    if (step.kind === 'hold') await machine.hold(step.what, step.down)
    else if (step.kind === 'act') await machine.input(step.action)
    else {
      const scene = { screen: machine.screen, pointer: await machine.pointer() }
      const parsed = actionAdapters.get('osworld-pyautogui')?.read(step.text, scene)
      if (parsed === undefined || !parsed.ok) return parsed?.error ?? 'no reader of pyautogui'
      const { action } = parsed
      for (const single of action.action === 'batch' ? action.actions : [action]) await machine.input(single)
    }
  }
  return null
}

function written(name: string, positional: readonly unknown[], keyword: ReadonlyMap<string, unknown>): string {
  const literal = (value: unknown): string => {
    if (typeof value === 'boolean') return value ? 'True' : 'False'
    if (value === null) return 'None'
    return Array.isArray(value) ? `[${value.map(literal).join(', ')}]` : JSON.stringify(value)
  }
  const named = [...keyword].map(([key, value]) => `${key}=${literal(value)}`)
  return `${name}(${[...positional.map(literal), ...named].join(', ')})`
}
