import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { actionNames, actionSchema, keyOfCharacter, keysOfCombination, parseAction } from './index.ts'

const screen = { width: 1024, height: 768 }
const errorOf = (input: unknown): string => {
  const parsed = parseAction(input, screen)
  return parsed.ok ? 'accepted' : parsed.error
}

describe('an action', () => {
  it.each([
    [{}, /needs "action", one of click, double_click,/],
    [{ action: 'tap', x: 1, y: 2 }, /no action "tap". Use one of click,/],
    [{ action: 'click', x: 1 }, /click does not fit: y: .*number of pixels.* It takes x, y, keys\./],
    [{ action: 'click', x: '1', y: 2 }, /click does not fit: x:/],
    [
      { action: 'click', x: 1024, y: 2 },
      /\(1024, 2\) is outside of the screen. x must be from 0 to 1023, y from 0 to 767\./,
    ],
    [{ action: 'move', x: -1, y: 2 }, /\(-1, 2\) is outside/],
    [{ action: 'drag', path: [{ x: 1, y: 1 }] }, /drag does not fit: path: needs at least two points/],
    [
      {
        action: 'drag',
        path: [
          { x: 1, y: 1 },
          { x: 1, y: 5000 },
        ],
      },
      /\(1, 5000\) is outside/,
    ],
    [{ action: 'key', keys: 'ctrl+banana' }, /keys: is no key: use names such as Enter, ctrl\+a/],
    [{ action: 'zoom', x: 1000, y: 0, width: 100, height: 100 }, /\(1099, 99\) is outside/],
    [{ action: 'batch', actions: [{ action: 'batch', actions: [] }] }, /batch does not fit: actions\.0/],
    [{ action: 'batch', actions: [{ action: 'click', x: 1, y: 9999 }] }, /\(1, 9999\) is outside/],
    [{ action: 'done', x: 3 }, /done does not fit.* It takes nothing else\./],
  ])('%j is refused with the fix', (input, message) => {
    expect(errorOf(input)).toMatch(message)
  })

  it('never throws, whatever a model says', () => {
    fc.assert(
      fc.property(fc.anything(), (input) => {
        parseAction(input, screen)
      }),
    )
    fc.assert(
      fc.property(fc.constantFrom(...actionNames), fc.dictionary(fc.string(), fc.anything()), (action, rest) => {
        parseAction({ ...rest, action }, screen)
      }),
    )
  })

  it('has a name of its own', () => {
    expect(new Set(actionNames).size).toBe(actionSchema.options.length)
  })
})

describe('keys', () => {
  it('are known by the names of xdotool, browsers and models', () => {
    const names = (text: string) => keysOfCombination(text)?.map(({ key }) => key)
    expect(names('ctrl+shift+T')).toEqual(['Control', 'Shift', 'T'])
    expect(names('Return')).toEqual(names('ENTER'))
    expect(names('Page_Down')).toEqual(names('pagedown'))
    expect(names('ctrl++')).toEqual(['Control', '+'])
    expect(names('+')).toEqual(['+'])
    expect(names('space')).toEqual([' '])
    expect(names('super+F5')).toEqual(['Meta', 'F5'])
    for (const wrong of ['', 'ctrl+', 'ctrl+nothing', '++', 'é']) expect(names(wrong)).toBeUndefined()
  })

  it('type every printable character of ASCII', () => {
    for (let code = 32; code < 127; code += 1) {
      const sign = String.fromCharCode(code)
      expect(keyOfCharacter(sign)).toMatchObject({ text: sign, keysym: code })
    }
    expect(keyOfCharacter('é')).toBeNull()
  })
})
