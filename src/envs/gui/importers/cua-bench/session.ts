import { z } from 'zod'
import { gui, PaddockError } from '../../../../kits/environment.ts'
import type { CuaSite } from './site.ts'
import type { Asked } from './module.ts'

const point = z.object({ x: z.number(), y: z.number() })
const launch = z.object({ url: z.string().nullish(), html: z.string().nullish(), title: z.string() })
const inWindow = z.object({ pid: z.int(), selector: z.string().default(''), script: z.string().default('') })

/** The answer to `Runtime.evaluate` of the DevTools protocol. */
const evaluated = z.object({
  result: z.object({ value: z.unknown().optional() }),
  exceptionDetails: z.object({ text: z.string() }).optional(),
})

/** What a module's session does on the browser of its box: a window is a tab, and the tab is the screen. */
export class CuaSession {
  readonly #session: gui.GuiSession
  readonly #site: CuaSite
  readonly #windows: gui.GuiPage[] = []

  constructor(session: gui.GuiSession, site: CuaSite) {
    this.#session = session
    this.#site = site
  }

  /** Answers what a module asks. Throws for what it cannot do, which the module is told. */
  async answer(asked: Asked): Promise<unknown> {
    switch (asked.ask) {
      case 'launch_window':
        return this.#launch(launch.parse(asked))
      case 'execute_javascript': {
        const { pid, script } = inWindow.parse(asked)
        const given = { expression: script, awaitPromise: true, returnByValue: true }
        const { result, exceptionDetails } = await this.#window(pid).send('Runtime.evaluate', given, evaluated)
        if (exceptionDetails !== undefined) throw new Error(exceptionDetails.text)
        return result.value
      }
      case 'get_element_rect':
        return this.#rect(inWindow.parse(asked))
      case 'click_element': {
        const given = inWindow.parse(asked)
        const { button } = z.object({ button: z.string() }).parse(asked)
        if ((await this.#window(given.pid).look(chooseOption, given.selector)) === true) return null
        const rect = await this.#rect(given)
        if (rect === null) throw new Error(`Element not found for selector: ${given.selector}`)
        return this.#act({ action: button, x: rect.x + rect.width / 2, y: rect.y + rect.height / 2 })
      }
      case 'execute_action':
        return this.#act(canonicalOf(asked))
      case 'screenshot':
        return Buffer.from((await this.#session.surface.picture({ format: 'png', scale: 1 })).data).toString('base64')
    }
    throw new Error(`${asked.ask} is not supported`)
  }

  async #launch({ url, html, title }: z.infer<typeof launch>): Promise<number> {
    const { browser, surface } = this.#session
    const address = html === null || html === undefined ? (url ?? '') : this.#site.put(html, title)
    if (this.#windows.length > 0) await browser.openTab()
    await browser.navigate(address)
    await surface.settle()
    this.#windows.push(browser.page)
    return this.#windows.length
  }

  #window(pid: number): gui.GuiPage {
    const page = this.#windows[pid - 1]
    if (page === undefined) throw new Error(`There is no window ${pid}`)
    return page
  }

  async #rect({ pid, selector }: z.infer<typeof inWindow>) {
    const shape = z.object({ x: z.number(), y: z.number(), width: z.number(), height: z.number() }).nullable()
    return shape.parse(await this.#window(pid).look(rectOf, selector))
  }

  async #act(given: unknown): Promise<null> {
    const parsed = gui.parseAction(given, this.#session.screen)
    if (!parsed.ok) throw new PaddockError('TASK_INVALID', parsed.error)
    const outcome = await this.#session.act(parsed.action)
    if (typeof outcome !== 'string' && outcome.status !== 'ok') throw new Error(outcome.text)
    await this.#session.surface.settle()
    return null
  }
}

const rectOf = `(selector) => {
  const found = document.querySelector(selector)
  if (found === null) return null
  const { x, y, width, height } = found.getBoundingClientRect()
  return { x, y, width, height }
}`

/** What the list of a drop-down shows is drawn outside of the page, where nothing can be clicked: it is chosen. */
const chooseOption = `(selector) => {
  const found = document.querySelector(selector)
  if (found === null || found.tagName !== 'OPTION') return false
  found.selected = true
  for (const type of ['input', 'change']) found.closest('select').dispatchEvent(new Event(type, { bubbles: true }))
  return true
}`

function canonicalOf(asked: Asked): unknown {
  const { name, given } = z.object({ name: z.string(), given: z.record(z.string(), z.unknown()) }).parse(asked)
  const at = () => point.parse(given)
  switch (name) {
    case 'ClickAction':
      return { action: 'click', ...at() }
    case 'RightClickAction':
      return { action: 'right_click', ...at() }
    case 'DoubleClickAction':
      return { action: 'double_click', ...at() }
    case 'MiddleClickAction':
      return { action: 'middle_click', ...at() }
    case 'MoveToAction':
      return { action: 'move', ...at() }
    case 'DragAction':
      return {
        action: 'drag',
        path: [
          { x: given['from_x'], y: given['from_y'] },
          { x: given['to_x'], y: given['to_y'] },
        ],
      }
    case 'ScrollAction': {
      const { direction, amount } = z.object({ direction: z.enum(['up', 'down']), amount: z.number() }).parse(given)
      return { action: 'scroll', x: 0, y: 0, dx: 0, dy: direction === 'up' ? -amount : amount }
    }
    case 'TypeAction':
      return { action: 'type', text: given['text'] }
    case 'KeyAction':
      return { action: 'key', keys: given['key'] }
    case 'HotkeyAction':
      return { action: 'key', keys: z.array(z.string()).parse(given['keys']).join('+') }
    case 'WaitAction':
      return { action: 'wait', seconds: given['seconds'] }
  }
  throw new Error(`${name} is not supported`)
}
