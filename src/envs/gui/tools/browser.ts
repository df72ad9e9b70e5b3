import { z } from 'zod'
import type { Tool, ToolOutcome } from '../../contract.ts'
import { defineTool } from '../../tool.ts'
import { parseAction } from '../actions/index.ts'
import { lineOf } from '../browser/index.ts'
import type { GuiSession } from '../session.ts'
import type { SessionOf } from './computer.ts'
import { goBack, navigate } from './navigate.ts'
import { selectOption } from './select.ts'

const target = z
  .string()
  .min(1)
  .max(500)
  .describe('A ref of the snapshot (e12), or a role and a name: button "Save". row "Ada" > button "Edit" looks inside.')
/** Elements of one page of what was found. */
const foundAtOnce = 40
const error = (text: string): ToolOutcome => ({ status: 'error', text })
const busy = 'A dialog is open, so the page takes no input. Answer it with browser_dialog.'

/** Tools over the page's accessibility tree, in the manner of Playwright MCP: most answer with a new snapshot. */
export function browserTools(sessionOf: SessionOf): readonly Tool[] {
  /** A tool that points at an element. */
  const pointed = async (session: GuiSession, where: string, act: (aimed: Aimed) => Promise<string | ToolOutcome>) => {
    if (session.busy) return error(busy)
    const aimed = await session.aim(where)
    return aimed.ok ? act(aimed) : error(aimed.error)
  }
  return [
    defineTool({
      name: 'browser_snapshot',
      description: 'Shows the page as a tree of elements with refs. Better than a screenshot for acting on elements.',
      input: z.object({ page: z.int().min(1).optional().describe('Long snapshots come in pages. Default 1.') }),
      run: async (context, { page = 1 }) => {
        const session = await sessionOf(context)
        return session.work('line', async () =>
          session.page.dialog === null ? session.snapshot(page) : 'No snapshot.',
        )
      },
    }),
    defineTool({
      name: 'browser_find',
      description: 'Finds the elements of the page whose line in the snapshot contains a text, wherever it stands.',
      input: z.object({
        text: z.string().min(1).max(200),
        page: z.int().min(1).optional().describe('Many come in pages of 40. Default 1.'),
      }),
      run: async (context, { text, page = 1 }) => {
        const session = await sessionOf(context)
        return session.work('line', async () => {
          if (session.busy) return error(busy)
          const words = text.toLowerCase()
          const found = (await session.nodes()).filter((node) => lineOf(node).toLowerCase().includes(words))
          if (found.length === 0) return error(`Nothing on the page contains ${JSON.stringify(text)}.`)
          const pages = Math.ceil(found.length / foundAtOnce)
          if (page > pages) return error(`What was found has ${pages} pages only.`)
          const shown = found.slice((page - 1) * foundAtOnce, page * foundAtOnce)
          const lines = shown.map((node) => lineOf({ ...node, depth: 0 })).join('\n')
          return pages === 1 ? lines : `${lines}\n[page ${page} of ${pages}; ${found.length} elements in all]`
        })
      },
    }),
    defineTool({
      name: 'browser_text',
      description: 'Shows the text of the page as a reader sees it.',
      input: z.object({ offset: z.int().min(0).optional().describe('Character to start at. Default 0.') }),
      run: async (context, { offset = 0 }) => {
        const session = await sessionOf(context)
        return session.work('line', async () => {
          if (session.busy) return error(busy)
          const text = String(await session.page.look('() => document.body?.innerText ?? ""', null))
          const shown = text.slice(offset, offset + 12_000)
          return offset + shown.length < text.length ? `${shown}\n[${text.length} characters in all]` : shown
        })
      },
    }),
    defineTool({
      name: 'browser_click',
      description: 'Clicks an element.',
      input: z.object({
        target,
        button: z.enum(['left', 'right', 'middle']).optional(),
        times: z.int().min(1).max(3).optional().describe('2: a double click. Default 1.'),
        keys: z.string().optional().describe('Keys held down meanwhile, such as ctrl.'),
      }),
      run: async (context, { target: where, button = 'left', times = 1, keys }) => {
        const session = await sessionOf(context)
        return session.work('tree', () =>
          pointed(session, where, async ({ x, y }) => {
            const left = times === 3 ? 'triple_click' : times === 2 ? 'double_click' : 'click'
            const action = button === 'right' ? 'right_click' : button === 'middle' ? 'middle_click' : left
            await session.input({ action, x, y, ...(keys === undefined ? {} : { keys }) })
            return 'Clicked.'
          }),
        )
      },
    }),
    defineTool({
      name: 'browser_hover',
      description: 'Moves the pointer over an element.',
      input: z.object({ target }),
      run: async (context, { target: where }) => {
        const session = await sessionOf(context)
        return session.work('tree', () =>
          pointed(session, where, async ({ x, y }) => {
            await session.input({ action: 'move', x, y })
            return 'The pointer is over it.'
          }),
        )
      },
    }),
    defineTool({
      name: 'browser_type',
      description: 'Types into a field, in place of what it holds.',
      input: z.object({
        target,
        text: z.string().max(4000),
        append: z.boolean().optional().describe('True: after what the field holds. Default false.'),
        submit: z.boolean().optional().describe('True: press Enter afterwards. Default false.'),
      }),
      run: async (context, { target: where, text, append = false, submit = false }) => {
        const session = await sessionOf(context)
        return session.work('tree', () =>
          pointed(session, where, async ({ node, x, y }) => {
            if (node.backendNodeId !== null) await session.focus(node.backendNodeId, { x, y })
            await session.input({ action: 'key', keys: append ? 'End' : 'ctrl+a', repeat: 1 })
            if (text !== '') await session.input({ action: 'type', text })
            else if (!append) await session.input({ action: 'key', keys: 'Delete', repeat: 1 })
            if (submit) await session.input({ action: 'key', keys: 'Enter', repeat: 1 })
            return 'Typed.'
          }),
        )
      },
    }),
    defineTool({
      name: 'browser_select',
      description: 'Chooses an option of a drop-down list, by its text.',
      input: z.object({ target, option: z.string().max(500) }),
      run: async (context, { target: where, option }) => {
        const session = await sessionOf(context)
        return session.work('tree', () =>
          pointed(session, where, ({ node }) => selectOption(session.page, node, option)),
        )
      },
    }),
    defineTool({
      name: 'browser_drag',
      description: 'Drags one element onto another.',
      input: z.object({ from: target, to: target }),
      run: async (context, { from, to }) => {
        const session = await sessionOf(context)
        return session.work('tree', () =>
          pointed(session, to, async () =>
            pointed(session, from, async (start) => {
              // Bringing the start into view may have moved the end.
              const end = await session.aim(to)
              if (!end.ok) return error(end.error)
              await session.input({ action: 'drag', path: [start, end].map(({ x, y }) => ({ x, y })) })
              return 'Dragged.'
            }),
          ),
        )
      },
    }),
    defineTool({
      name: 'browser_press',
      description: 'Presses keys, such as Enter, ctrl+a or shift+Tab, in the page.',
      input: z.object({ keys: z.string().min(1).max(100) }),
      run: async (context, { keys }) => {
        const session = await sessionOf(context)
        const parsed = parseAction({ action: 'key', keys }, session.screen)
        if (!parsed.ok) return error(parsed.error)
        return session.work('tree', async () => {
          await session.front()
          return session.act(parsed.action)
        })
      },
    }),
    defineTool({
      name: 'browser_navigate',
      description: 'Goes to an address of the task.',
      input: z.object({ url: z.string().min(1).max(2000) }),
      run: async (context, { url }) => {
        const session = await sessionOf(context)
        return session.work('tree', async () => navigate(session, url))
      },
    }),
    defineTool({
      name: 'browser_back',
      description: 'Goes back to the page before.',
      input: z.object({}),
      run: async (context) => {
        const session = await sessionOf(context)
        return session.work('tree', async () => {
          if (session.busy) return error(busy)
          const went = await goBack(session.page)
          return went ? 'Went back.' : error('There is no page before this one.')
        })
      },
    }),
    defineTool({
      name: 'browser_tabs',
      description: 'Lists the tabs, brings one to the front, opens or closes one.',
      input: z.object({
        action: z.enum(['list', 'select', 'close', 'new']),
        index: z.int().min(0).optional().describe('select, close: number of the tab as listed, from 0.'),
      }),
      run: async (context, { action, index = 0 }) => {
        const session = await sessionOf(context)
        return session.work('line', () => tabs(session, action, index))
      },
    }),
    defineTool({
      name: 'browser_dialog',
      description: 'Answers the dialog (alert, confirm, prompt) that is open.',
      input: z.object({
        accept: z.boolean(),
        text: z.string().max(2000).optional().describe('prompt: what to enter.'),
      }),
      run: async (context, { accept, text }) => {
        const session = await sessionOf(context)
        return session.work('tree', async () => {
          if (session.page.dialog === null) return error('No dialog is open.')
          await session.page.answerDialog(accept, text ?? null)
          return accept ? 'Accepted.' : 'Dismissed.'
        })
      },
    }),
  ]
}

type Aimed = Extract<Awaited<ReturnType<GuiSession['aim']>>, { readonly ok: true }>

async function tabs(session: GuiSession, action: 'list' | 'select' | 'close' | 'new', index: number) {
  const { browser } = session
  if (action === 'new') await browser.openTab()
  else if (action === 'select' && !(await browser.activate(index))) return error(`There is no tab ${index}.`)
  else if (action === 'close' && !(await browser.closeTab(index))) {
    return error(browser.tabs.length === 1 ? 'The last tab stays open.' : `There is no tab ${index}.`)
  }
  const { page } = session
  return browser.tabs.map((tab, at) => `${at}${tab === page ? ' (in front)' : ''}: ${tab.url}`).join('\n')
}
