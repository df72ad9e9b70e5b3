import { PaddockError, Turns } from '../../../core/index.ts'
import type { ToolOutcome } from '../../contract.ts'
import { type Action, type Screen, type SingleAction } from '../actions/index.ts'
import type { Machine } from './machine.ts'
import type { GuiRecord } from '../record.ts'
import type { Shown } from '../session.ts'
import type { ComputerSession } from '../tools/index.ts'

/** Time for a machine to show what an action began: its server tells of no repaint. OSWorld's own pause is 2 s. */
const paintMs = 1000

/** One attempt on a machine that OSWorld's server runs on: what the tool `computer` works with there. */
export class MachineSession implements ComputerSession {
  readonly #machine: Machine
  readonly #maxActions: number | null
  readonly #turns = new Turns()
  #pointer: { readonly x: number; readonly y: number } | null = null
  #record: Omit<GuiRecord, 'forged' | 'state'> = { ended: null, answer: null, actions: 0 }

  constructor(machine: Machine, maxActions: number | null) {
    this.#machine = machine
    this.#maxActions = maxActions
  }

  get screen(): Screen {
    return this.#machine.screen
  }

  get pointer(): { readonly x: number; readonly y: number } | null {
    return this.#pointer
  }

  record(): GuiRecord {
    return { ...this.#record, forged: 0, state: null }
  }

  /** Runs one tool's work when those before it are through, unless the attempt is over; a screenshot follows. */
  async work(shown: Shown, run: () => Promise<string | ToolOutcome>): Promise<ToolOutcome> {
    return this.#turns.take(() => this.#guarded(shown, run))
  }

  async act(action: Action): Promise<string | ToolOutcome> {
    const said: string[] = []
    for (const single of action.action === 'batch' ? action.actions : [action]) said.push(await this.#single(single))
    return said.join('\n')
  }

  async #guarded(shown: Shown, run: () => Promise<string | ToolOutcome>): Promise<ToolOutcome> {
    if (this.#record.ended !== null) {
      const facts = { ended: this.#record.ended }
      return { status: 'error', text: 'The attempt is over: it was ended before. Nothing more can be done.', facts }
    }
    if (this.#maxActions !== null && this.#record.actions >= this.#maxActions) {
      return {
        status: 'error',
        text: `All ${this.#maxActions} actions of this task are used up.`,
        facts: { ended: 'limit' },
      }
    }
    this.#record = { ...this.#record, actions: this.#record.actions + 1 }
    const done = await run()
    const outcome: ToolOutcome = typeof done === 'string' ? { status: 'ok', text: done } : done
    const { ended } = this.#record
    if (ended !== null) return { ...outcome, facts: { ended } }
    if (shown !== 'picture') return outcome
    await new Promise((resolve) => setTimeout(resolve, paintMs))
    const data = await this.#machine.screenshot()
    return { ...outcome, pictures: [{ mediaType: 'image/png', data, ...this.screen }] }
  }

  async #single(action: SingleAction): Promise<string> {
    switch (action.action) {
      case 'screenshot':
        return 'This is the screen.'
      case 'zoom':
        throw new PaddockError('TASK_UNSUPPORTED', 'A machine of OSWorld shows its whole screen only')
      case 'answer':
        this.#record = { ...this.#record, ended: 'answered', answer: action.text }
        return 'The answer was taken. The attempt is over.'
      case 'done':
        this.#record = { ...this.#record, ended: 'done' }
        return 'The attempt is over.'
      case 'fail':
        this.#record = { ...this.#record, ended: 'failed' }
        return 'The attempt is over, without success.'
      default:
        await this.#machine.input(action)
        if ('x' in action) this.#pointer = { x: action.x, y: action.y }
        return `Did ${action.action}.`
    }
  }
}
