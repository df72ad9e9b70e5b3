import { z } from 'zod'
import type { ParsedAction, Screen, SingleAction } from '../../actions/index.ts'
import { clickNames, clicks } from '../clicks.ts'
import { type ActionAdapter, notch, type Point, type Scene, told } from '../contract.ts'
import { pixelsOf } from '../coordinates.ts'
import { batched, canonical, fitting, outside, scaled, surplusOf, type Takes } from '../read.ts'

/** Versions of Anthropic's computer tool; 20251124 can zoom. */
export type AnthropicVersion = '20250124' | '20251124'

const pair = z.tuple([z.number(), z.number()])
const input = z.strictObject({
  action: z.string(),
  coordinate: pair.nullish(),
  start_coordinate: pair.nullish(),
  text: z.string().nullish(),
  scroll_direction: z.enum(['up', 'down', 'left', 'right']).nullish(),
  scroll_amount: z.int().min(0).nullish(),
  duration: z.number().nullish(),
  region: z.tuple([z.number(), z.number(), z.number(), z.number()]).nullish(),
})
type Input = z.infer<typeof input>

/** Sizes that screens are scaled down to (anthropic-quickstarts, computer-use-demo `tools/computer.py`). */
const targets: readonly Screen[] = [
  { width: 1024, height: 768 },
  { width: 1280, height: 800 },
  { width: 1366, height: 768 },
]
/** What each action takes, as `tools/computer.py` there; clicks take a place and keys that are held. */
const takes: Takes = {
  ...Object.fromEntries(Object.keys(clicks).map((name) => [name, ['coordinate', 'text']])),
  mouse_move: ['coordinate'],
  left_click_drag: ['start_coordinate', 'coordinate'],
  key: ['text'],
  hold_key: ['text', 'duration'],
  type: ['text'],
  scroll: ['coordinate', 'scroll_direction', 'scroll_amount', 'text'],
  wait: ['duration'],
  screenshot: [],
}
const withZoom: Takes = { ...takes, zoom: ['region'] }

/**
 * Anthropic's computer tool (`BetaToolComputerUse20250124` and `20251124` of anthropic-sdk-typescript). A screen that is
 * larger than a known size of its shape is shown smaller, and coordinates come back on the small one.
 */
export function anthropicAdapter(version: AnthropicVersion): ActionAdapter {
  const picture = (screen: Screen): Screen => {
    const shape = screen.width / screen.height
    const target = targets.find((one) => Math.abs(one.width / one.height - shape) < 0.02)
    return target !== undefined && target.width < screen.width ? target : screen
  }
  return {
    name: `anthropic-${version}`,
    picture,
    places: (screen) => pixelsOf(picture(screen)),
    read(said, scene) {
      const parsed = fitting(input, said)
      if (!parsed.ok) return told(`The computer action does not fit: ${parsed.error}.`)
      return readInput(parsed.value, scene, picture(scene.screen), version)
    },
    write(action, { screen }) {
      if (action.action === 'batch') return null
      return writeInput(action, screen, picture(screen), version)
    },
  }
}

function readInput(said: Input, scene: Scene, small: Screen, version: AnthropicVersion): ParsedAction {
  const { screen } = scene
  const onScreen = ([x, y]: readonly [number, number]): Point => ({
    x: scaled(x, small.width, screen.width),
    y: scaled(y, small.height, screen.height),
  })
  const [left = 0, top = 0, right = small.width, bottom = small.height] = said.region ?? []
  // The right and the lower edge of a region are the first that do not belong to it.
  for (const place of [said.coordinate, said.start_coordinate, [left, top], [right - 1, bottom - 1]] as const) {
    const beside = place == null ? null : outside({ x: place[0], y: place[1] }, small)
    if (beside !== null) return told(beside)
  }
  const { action: _, ...given } = said
  const surplus = surplusOf(withZoom, said.action, given)
  if (surplus !== null) return told(surplus)
  const point = said.coordinate == null ? scene.pointer : onScreen(said.coordinate)
  const needs = (what: string) => told(`The action ${said.action} needs ${what}.`)
  const click = clickNames.find(([name]) => name === said.action)?.[1]
  if (click !== undefined) {
    if (point === null) return needs('coordinate')
    return canonical({ action: click, ...point, ...(said.text == null ? {} : { keys: said.text }) }, scene)
  }
  switch (said.action) {
    case 'mouse_move':
      return said.coordinate == null || point === null
        ? needs('coordinate')
        : canonical({ action: 'move', ...point }, scene)
    case 'left_click_drag': {
      const from = said.start_coordinate == null ? scene.pointer : onScreen(said.start_coordinate)
      if (said.coordinate == null || point === null) return needs('coordinate')
      if (from === null) return needs('start_coordinate')
      return canonical({ action: 'drag', path: [from, point] }, scene)
    }
    case 'key':
      // `xdotool key` presses what blanks part one after the other.
      if (said.text == null) return needs('text')
      return batched(
        (said.text.trim() === '' ? [said.text] : said.text.trim().split(/\s+/)).map((keys) =>
          canonical({ action: 'key', keys, repeat: 1 }, scene),
        ),
        scene,
      )
    case 'hold_key':
      if (said.text == null || said.duration == null) return needs('text and duration')
      return canonical({ action: 'hold', keys: said.text, seconds: said.duration }, scene)
    case 'type':
      return said.text == null ? needs('text') : canonical({ action: 'type', text: said.text }, scene)
    case 'scroll': {
      if (said.scroll_direction == null || said.scroll_amount == null)
        return needs('scroll_direction and scroll_amount')
      if (point === null) return needs('coordinate')
      const way =
        said.scroll_amount * notch * (said.scroll_direction === 'up' || said.scroll_direction === 'left' ? -1 : 1)
      const sideways = said.scroll_direction === 'left' || said.scroll_direction === 'right'
      const held = said.text == null ? {} : { keys: said.text }
      return canonical({ action: 'scroll', ...point, dx: sideways ? way : 0, dy: sideways ? 0 : way, ...held }, scene)
    }
    case 'wait':
      return said.duration == null ? needs('duration') : canonical({ action: 'wait', seconds: said.duration }, scene)
    case 'screenshot':
      return canonical({ action: 'screenshot' }, scene)
    case 'zoom': {
      if (version !== '20251124') break
      if (said.region == null) return needs('region')
      const [left, top, right, bottom] = said.region
      const from = onScreen([left, top])
      const to = onScreen([right, bottom])
      return canonical({ action: 'zoom', ...from, width: to.x - from.x, height: to.y - from.y }, scene)
    }
  }
  const known = Object.keys(version === '20251124' ? withZoom : takes)
  return told(
    `The action ${JSON.stringify(said.action.slice(0, 40))} is not offered. Use one of ${known.join(', ')}; ` +
      'to press and let go of the mouse in two places use left_click_drag.',
  )
}

function writeInput(action: SingleAction, screen: Screen, small: Screen, version: AnthropicVersion): unknown {
  const pair = ({ x, y }: Point): [number, number] => [
    scaled(x, screen.width, small.width),
    scaled(y, screen.height, small.height),
  ]
  switch (action.action) {
    case 'click':
    case 'right_click':
    case 'middle_click':
    case 'double_click':
    case 'triple_click': {
      const name = clickNames.find(([, canonicalName]) => canonicalName === action.action)?.[0]
      return { action: name, coordinate: pair(action), ...(action.keys === undefined ? {} : { text: action.keys }) }
    }
    case 'move':
      return { action: 'mouse_move', coordinate: pair(action) }
    case 'drag': {
      const [from, to, third] = action.path
      if (from === undefined || to === undefined || third !== undefined || action.keys !== undefined) return null
      return { action: 'left_click_drag', start_coordinate: pair(from), coordinate: pair(to) }
    }
    case 'key':
      return action.repeat === 1 ? { action: 'key', text: action.keys } : null
    case 'hold':
      return { action: 'hold_key', text: action.keys, duration: action.seconds }
    case 'type':
      return { action: 'type', text: action.text }
    case 'scroll': {
      const { dx, dy } = action
      const way = dx === 0 ? dy : dx
      if ((dx !== 0 && dy !== 0) || way % notch !== 0) return null
      const direction = dx === 0 ? (dy < 0 ? 'up' : 'down') : dx < 0 ? 'left' : 'right'
      const held = action.keys === undefined ? {} : { text: action.keys }
      const scroll = { scroll_direction: direction, scroll_amount: Math.abs(way) / notch }
      return { action: 'scroll', coordinate: pair(action), ...scroll, ...held }
    }
    case 'wait':
      return { action: 'wait', duration: action.seconds }
    case 'screenshot':
      return { action: 'screenshot' }
    case 'zoom': {
      if (version !== '20251124') return null
      const { x, y, width, height } = action
      return { action: 'zoom', region: [...pair(action), ...pair({ x: x + width, y: y + height })] }
    }
    // The model ends with a message.
    case 'answer':
    case 'done':
    case 'fail':
      return null
  }
}
