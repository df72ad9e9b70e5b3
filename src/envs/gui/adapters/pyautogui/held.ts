import type { ParsedAction } from '../../actions/index.ts'
import { type Scene, told } from '../contract.ts'
import { joinKeys, splitKeys } from '../keys.ts'
import { argumentsOf, type Call } from '../python-calls.ts'
import { batched, canonical } from '../read.ts'

/** A call, and the keys that are held while it is done. */
export interface HeldCall {
  readonly call: Call
  readonly held: readonly string[]
}

/**
 * Calls between `keyDown` and `keyUp` with the keys that they hold; keys that are let go without a call in between are a `hotkey`. A text
 * says what is wrong: a key is let go that was not held, or stays held.
 */
export function heldCalls(calls: readonly Call[]): readonly HeldCall[] | string {
  const held: string[] = []
  const found: HeldCall[] = []
  let isUnused = false
  for (const call of calls) {
    const turned = turnedKey(call)
    if (typeof turned === 'string') return turned
    if (turned === null) found.push({ call, held: [...held] })
    else if (held.includes(turned.key) === turned.down)
      return `The key ${turned.key} is ${turned.down ? 'down' : 'up'} already.`
    else if (turned.down) held.push(turned.key)
    else {
      if (isUnused) found.push({ call: { name: 'hotkey', positional: [...held], keyword: new Map() }, held: [] })
      held.splice(held.indexOf(turned.key), 1)
    }
    isUnused = turned?.down === true
  }
  return held.length === 0 ? found : `Let go of ${held.join(' and ')} in the same answer with keyUp, or use hotkey.`
}

/** The key that a call presses or lets go; null for any other call. */
function turnedKey(call: Call): { readonly key: string; readonly down: boolean } | null | string {
  const name = call.name.replace(/^pyautogui\./, '')
  if (name !== 'keyDown' && name !== 'keyUp') return null
  const given = argumentsOf(call, ['key', 'logScreenshot', '_pause'])
  if (typeof given === 'string') return given
  const key = given.get('key')
  return typeof key === 'string' && key !== '' ? { key, down: name === 'keyDown' } : `${name} needs a key in quotes.`
}

/** An action with keys held. */
export function withHeld(read: ParsedAction, held: readonly string[], scene: Scene): ParsedAction {
  if (!read.ok || held.length === 0) return read
  const { action } = read
  switch (action.action) {
    case 'batch':
      return batched(
        action.actions.map((one) => withHeld({ ok: true, action: one }, held, scene)),
        scene,
      )
    case 'key':
      return canonical({ ...action, keys: joinKeys([...held, ...splitKeys(action.keys)]) }, scene)
    case 'click':
    case 'right_click':
    case 'middle_click':
    case 'double_click':
    case 'triple_click':
    case 'scroll':
    case 'drag':
      return canonical({ ...action, keys: joinKeys(held) }, scene)
    case 'move':
    case 'wait':
      return read
    default:
      return told(`${action.action} cannot be done while keys are held: call keyUp before.`)
  }
}
