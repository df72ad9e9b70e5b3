/** An application of the environment `gui`: pages, a tool beside them, a goal. Listed under `gui.apps`. */
import { defineTool, gui, z } from 'paddock-rl/environment'

const { defineApp, field, form, hidden, html, page, steps, table } = gui

interface Room {
  readonly name: string
  readonly measured: number
  target: number
}

const find = (rooms: readonly Room[], name: string) => rooms.find((room) => room.name === name)
const set = (name: string, target: number) => [
  steps.type(`row ${steps.q(name)} > textbox "Target"`, String(target)),
  steps.click(`row ${steps.q(name)} > button "Set"`),
  steps.done(),
]

export default defineApp<{ readonly rooms: Room[] }>({
  name: 'thermostat',
  apiVersion: 1,
  start: (d) => {
    const rooms = d.shuffled(['attic', 'bath', 'cellar', 'kitchen']).map((name, at) => ({ name, measured: 14 + at }))
    return { rooms: d.shuffled(rooms).map((room) => ({ ...room, target: 18 })) }
  },
  page: (path, _query, { rooms }) => {
    const change = ({ name, target }: Room) =>
      html`${hidden('room', name)}${field('Target', 'target', { value: target, size: 3 })}<button>Set</button>`
    const rows = rooms.map((room) => ({ name: room.name, cells: [room.name, form('set', change(room))] }))
    return path === '/' ? page({ title: 'Thermostat', body: table([], rows) }) : null
  },
  act: (_op, { room = '', target = '' }, { rooms }) => {
    const found = find(rooms, room)
    if (found === undefined || !/^\d\d$/.test(target)) return '!A room and two digits are needed.'
    found.target = Number(target)
    return '/'
  },
  tools: ({ rooms }) => [
    defineTool({
      name: 'read_sensor',
      description: 'Tells how warm a room is.',
      input: z.object({ room: z.string() }),
      run: async (_context, { room }) => ({ status: 'ok', text: `${find(rooms, room)?.measured ?? 'no'} degrees` }),
    }),
  ],
  goals: {
    coldest: (d, { rooms }) => {
      const [cold = '', next = ''] = rooms.toSorted((a, b) => a.measured - b.measured).map(({ name }) => name)
      const target = d.between(20, 24)
      return {
        instruction: `Read the sensors of all rooms, and set the target of the coldest room to ${target}.`,
        change: (state) => state.rooms.filter(({ name }) => name === cold).forEach((room) => (room.target = target)),
        oracle: [...rooms.map(({ name: room }) => ({ tool: 'read_sensor', args: { room } })), ...set(cold, target)],
        near: set(next, target),
      }
    },
  },
})
