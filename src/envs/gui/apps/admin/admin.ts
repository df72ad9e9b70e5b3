import { gui } from '../../../../kits/environment.ts'

const { cities, defineApp, firstName, form, hidden, html, page, people, steps, table } = gui

interface Member {
  readonly id: string
  readonly name: string
  readonly city: string
  readonly visits: number
  role: string
  active: boolean
}
interface Admin {
  members: Member[]
}

const roles = ['Reader', 'Editor', 'Owner'] as const
const perPage = 8
const sorts = ['name', 'city', 'visits'] as const
const { click, type, select, look, done, answer, q } = steps

/** A table of members: sorted, filtered, in pages, with actions on the ticked rows. */
export const admin = defineApp<Admin>({
  name: 'admin',
  apiVersion: 1,
  start: (d) => {
    const visits = d.shuffled(Array.from({ length: 24 }, (_, at) => 3 + at * 7))
    return {
      members: Array.from({ length: 24 }, (_, at) => {
        const [first = ''] = (people[at % 12] ?? '').split(' ')
        const last = (people[(at * 5 + 3 + Math.floor(at / 12)) % 12] ?? '').split(' ')[1] ?? ''
        return {
          id: `u${at + 1}`,
          name: `${first} ${last}`,
          city: d.pick(cities.slice(0, 6)),
          visits: visits[at] ?? 0,
          role: d.pick(roles.slice(0, 2)),
          active: true,
        }
      }),
    }
  },
  page: (path, query, state) => (path === '/' ? membersPage(state, query) : null),
  act: (op, fields, state) => {
    const ids = (fields['id'] ?? '').split(',').filter((id) => id !== '')
    const chosen = state.members.filter(({ id }) => ids.includes(id))
    if (op !== 'bulk') return '!Unknown.'
    if (chosen.length === 0) return '!Tick a row first.'
    const role = roles.find((name) => fields['what'] === `Make ${name}`)
    for (const member of chosen) {
      if (role !== undefined) member.role = role
      else if (fields['what'] === 'Deactivate') member.active = false
    }
    if (fields['what'] === 'Delete') state.members = state.members.filter(({ id }) => !ids.includes(id))
    return '/'
  },
  goals: {
    'change-role': (d, { members }) => {
      const [member, other] = d.shuffled(members)
      const make = (one: Member | undefined) => [look(), ...only(one), ...bulk('Make Owner'), done()]
      return {
        instruction: `Make ${member?.name} an Owner in the table of members.`,
        change: (s) => {
          for (const one of s.members) if (one.id === member?.id) one.role = 'Owner'
        },
        oracle: make(member),
        near: make(other),
      }
    },
    'deactivate-city': (d, { members }) => {
      const counts = cities.map((city) => members.filter((one) => one.city === city).length)
      const city = d.pick(cities.filter((_, at) => (counts[at] ?? 0) >= 2 && (counts[at] ?? 0) <= perPage))
      const mine = members.filter((one) => one.city === city).toSorted((a, b) => (a.name < b.name ? -1 : 1))
      const off = (list: readonly Member[]) => [
        look(),
        type('searchbox "Filter"', city),
        click('button "Show"'),
        ...list.map((one) => click(`row ${q(one.name)} > checkbox "Tick"`)),
        ...bulk('Deactivate'),
        done(),
      ]
      return {
        instruction: `Deactivate all members from ${city}, and nobody else.`,
        change: (s) => {
          for (const one of s.members) if (one.city === city) one.active = false
        },
        oracle: off(mine),
        near: off(mine.slice(1)),
      }
    },
    'delete-fewest': (_d, { members }) => {
      const [fewest, second] = members.toSorted((a, b) => a.visits - b.visits)
      const remove = (one: Member | undefined) => [
        look(),
        click('link "Visits"'),
        click(`row ${q(one?.name ?? '')} > checkbox "Tick"`),
        ...bulk('Delete'),
        done(),
      ]
      return {
        instruction: 'Delete the member with the fewest visits from the table.',
        change: (s) => {
          s.members = s.members.filter(({ id }) => id !== fewest?.id)
        },
        oracle: remove(fewest),
        near: remove(second),
      }
    },
    'find-city': (d, { members }) => {
      const member = d.pick(members)
      return {
        instruction: `In which city does the member ${member.name} live? Answer with the city and change nothing.`,
        answer: member.city,
        oracle: [look(), type('searchbox "Filter"', member.name), click('button "Show"'), answer(member.city)],
        near: [look(), answer(cities.find((city) => city !== member.city) ?? '')],
      }
    },
    'most-visits': (_d, { members }) => {
      const [most, second] = members.toSorted((a, b) => b.visits - a.visits)
      return {
        instruction: 'Who of the members has the most visits? Answer with the full name and change nothing.',
        answer: most?.name ?? '',
        oracle: [look(), click('link "Visits"'), click('link "Visits"'), answer(most?.name ?? '')],
        near: [look(), answer(second?.name ?? firstName(''))],
      }
    },
  },
})

function only(member: Member | undefined) {
  const name = member?.name ?? ''
  return [type('searchbox "Filter"', name), click('button "Show"'), click(`row ${q(name)} > checkbox "Tick"`)]
}

function bulk(what: string) {
  return [select('combobox "With the ticked rows"', what), click('button "Do it"')]
}

function membersPage({ members }: Admin, query: Readonly<Record<string, string>>) {
  const words = (query['q'] ?? '').toLowerCase()
  const sort = sorts.find((name) => name === query['sort']) ?? 'name'
  const down = query['down'] === '1'
  const fitting = members
    .filter(({ name, city }) => `${name} ${city}`.toLowerCase().includes(words))
    .toSorted((a, b) => (a[sort] < b[sort] ? -1 : 1) * (down ? -1 : 1))
  const at = Math.max(1, Number(query['page'] ?? 1) || 1)
  const rows = fitting.slice((at - 1) * perPage, at * perPage).map(({ id, name, city, visits, role, active }) => {
    const box = html`<input type="checkbox" name="id" value="${id}" aria-label="Tick" />`
    return { name, cells: [box, name, city, visits, role, active ? 'active' : 'not active'] }
  })
  const link = (o: Readonly<Record<string, string>>) =>
    `/?${new URLSearchParams({ q: words, sort, down: down ? '1' : '0', ...o }).toString()}`
  const heads = (['Name', 'City', 'Visits'] as const).map(
    (text) =>
      html`<a
        href="${link({ sort: text.toLowerCase(), down: sort === text.toLowerCase() && !down ? '1' : '0', page: '1' })}"
        >${text}</a
      >`,
  )
  const pages = Array.from(
    { length: Math.ceil(fitting.length / perPage) },
    (_, n) => html`<a href="${link({ page: String(n + 1) })}">Page ${n + 1}</a> `,
  )
  const choices = ['Make Reader', 'Make Editor', 'Make Owner', 'Deactivate', 'Delete'].map(
    (text) => html`<option>${text}</option>`,
  )
  return page({
    title: 'Members',
    bar: [['All members', '/']],
    body: html`<form action="/">
        ${hidden('sort', sort)}${hidden('down', down ? '1' : '0')}<input
          type="search"
          name="q"
          aria-label="Filter"
          value="${words}"
        />
        <button>Show</button>
      </form>
      ${form(
        'bulk',
        html`${table(['', ...heads, 'Role', 'State'], rows)}
          <p>${pages}</p>
          <label
            >With the ticked rows
            <select name="what">
              ${choices}
            </select></label
          >
          <button>Do it</button>`,
      )}`,
  })
}
