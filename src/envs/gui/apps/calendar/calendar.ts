import { gui } from '../../../../kits/environment.ts'

const { act, defineApp, field, form, hidden, html, months, page, steps } = gui

interface Meeting {
  readonly id: string
  title: string
  /** `2027-03-09`. */
  day: string
  time: string
}
interface Calendar {
  meetings: Meeting[]
}

const year = 2027
const titles = ['Dentist', 'Team lunch', 'Choir', 'Rent talk', 'Yoga', 'Book club', 'Car service', 'Vet'] as const
const times = ['08:00', '09:30', '11:00', '14:00', '16:30', '18:00'] as const
const pad = (n: number): string => String(n).padStart(2, '0')
const dayOf = (month: number, day: number): string => `${year}-${pad(month)}-${pad(day)}`
const said = (day: string): string => `${Number(day.slice(8))} ${months[Number(day.slice(5, 7)) - 1]} ${year}`
const { click, type, look, done, answer, q } = steps

/** A calendar: months, meetings, and a date picker that is no native field. */
export const calendar = defineApp<Calendar>({
  name: 'calendar',
  apiVersion: 1,
  start: (d) => ({
    meetings: d
      .shuffled(titles)
      .slice(0, 6)
      .map((title, at) => ({
        id: `v${at + 1}`,
        title,
        day: dayOf(d.between(2, 4), d.between(1, 28)),
        time: d.pick(times),
      })),
  }),
  page: (path, query, state) => {
    const month = Math.min(12, Math.max(1, Number(query['month'] ?? 3) || 3))
    if (path === '/') return monthPage(state, month)
    if (path === '/new') return editor({ id: '', title: '', day: '', time: '' }, query)
    const meeting = state.meetings.find(({ id }) => path === `/meeting/${id}`)
    return meeting === undefined ? null : editor(meeting, query)
  },
  act: (op, fields, state) => {
    const meeting = state.meetings.find(({ id }) => id === fields['id'])
    switch (op) {
      case 'save': {
        const { title = '', day = '', time = '' } = fields
        if (title.trim() === '') return '!A meeting needs a title.'
        if (!/^2027-\d\d-\d\d$/.test(day)) return '!Pick a day.'
        if (!/^([01]\d|2[0-3]):[0-5]\d$/.test(time)) return '!Give the time as 14:00.'
        const made = { title: title.trim(), day, time }
        if (meeting === undefined) state.meetings.push({ id: `v${state.meetings.length + 1}`, ...made })
        else Object.assign(meeting, made)
        return `/?month=${Number(day.slice(5, 7))}`
      }
      case 'cancel':
        state.meetings = state.meetings.filter(({ id }) => id !== fields['id'])
        return '/'
      default:
        return '!Unknown.'
    }
  },
  goals: {
    add: (d, { meetings }) => {
      const title = `${d.pick(['Interview', 'Rehearsal', 'Inspection'])} ${d.between(2, 40)}`
      const day = dayOf(d.between(4, 6), d.between(1, 28))
      const time = d.pick(times)
      const add = (at: string) => [
        look(),
        click('link "New meeting"'),
        type('textbox "Title"', title),
        type('textbox "Time"', time),
        ...pick(3, at),
        click('button "Save"'),
        done(),
      ]
      const next = `${day.slice(0, 8)}${pad((Number(day.slice(8)) % 28) + 1)}`
      return {
        instruction: `Enter a meeting "${title}" into the calendar, on ${said(day)} at ${time}.`,
        change: (s) => {
          s.meetings.push({ id: `v${meetings.length + 1}`, title, day, time })
        },
        oracle: add(day),
        near: add(next),
      }
    },
    move: (d, { meetings }) => {
      const meeting = d.pick(meetings)
      const month = Number(meeting.day.slice(5, 7))
      const [to, wrong] = d
        .shuffled(Array.from({ length: 28 }, (_, n) => dayOf(month, n + 1)))
        .filter((day) => day !== meeting.day)
      const move = (day: string) => [
        look(),
        ...turn(3, month),
        click(`link ${q(`${meeting.time} ${meeting.title}`)}`),
        ...pick(month, day),
        click('button "Save"'),
        done(),
      ]
      return {
        instruction: `Move the meeting "${meeting.title}" of ${said(meeting.day)} to ${said(to ?? '')}, at the same time.`,
        change: (s) => {
          for (const one of s.meetings) if (one.id === meeting.id) one.day = to ?? ''
        },
        oracle: move(to ?? ''),
        near: move(wrong ?? ''),
      }
    },
    cancel: (d, { meetings }) => {
      const [meeting, other] = d.shuffled(meetings)
      const cancel = (one: Meeting | undefined) => [
        look(),
        ...turn(3, Number(one?.day.slice(5, 7))),
        click(`link ${q(`${one?.time} ${one?.title}`)}`),
        click('button "Cancel meeting"'),
        done(),
      ]
      return {
        instruction: `Cancel the meeting "${meeting?.title}", which is between February and April ${year}.`,
        change: (s) => {
          s.meetings = s.meetings.filter(({ id }) => id !== meeting?.id)
        },
        oracle: cancel(meeting),
        near: cancel(other),
      }
    },
    when: (d, { meetings }) => {
      const meeting = d.pick(meetings)
      return {
        instruction: `At what time does the meeting "${meeting.title}" begin? It is between February and April ${year}. Answer as 14:00 and change nothing.`,
        answer: meeting.time,
        oracle: [look(), ...turn(3, Number(meeting.day.slice(5, 7))), answer(meeting.time)],
        near: [look(), answer(times.find((time) => time !== meeting.time) ?? '')],
      }
    },
  },
})

/** Turns the pages from one month to another. */
function turn(from: number, to: number) {
  return Array.from({ length: Math.abs(to - from) }, () =>
    click(to > from ? 'link "Next month"' : 'link "Month before"'),
  )
}

/** Opens the date picker, which shows `from`, and picks a day. */
function pick(from: number, day: string) {
  const to = Number(day.slice(5, 7))
  const turns = Array.from({ length: Math.abs(to - from) }, () =>
    click(to > from ? 'button "Later"' : 'button "Earlier"'),
  )
  return [click('button "Pick a day"'), ...turns, click(`button ${q(said(day))}`)]
}

function weeks(month: number): readonly (readonly (number | null)[])[] {
  // 1 January 2027 is a Friday; columns begin on Monday.
  const before = (new Date(Date.UTC(year, month - 1, 1)).getUTCDay() + 6) % 7
  const length = new Date(Date.UTC(year, month, 0)).getUTCDate()
  const all = [...Array.from({ length: before }, () => null), ...Array.from({ length }, (_, n) => n + 1)]
  return Array.from({ length: Math.ceil(all.length / 7) }, (_, w) => all.slice(w * 7, w * 7 + 7))
}

function monthPage({ meetings }: Calendar, month: number) {
  const lines = weeks(month).map((week) => {
    const days = week.map((day) => {
      if (day === null) return html`<td></td>`
      const mine = meetings
        .filter((meeting) => meeting.day === dayOf(month, day))
        .map((meeting) => html`<br /><a href="/meeting/${meeting.id}">${meeting.time} ${meeting.title}</a>`)
      return html`<td>${day}${mine}</td>`
    })
    return html`<tr>
      ${days}
    </tr>`
  })
  return page({
    title: 'Calendar',
    style: 'td{height:58px;width:14%;vertical-align:top}',
    bar: [
      ['Calendar', '/'],
      ['New meeting', '/new'],
    ],
    body: html`<div class="row">
        ${month > 1 && html`<a href="/?month=${month - 1}">Month before</a>`}
        <h1>${months[month - 1] ?? ''} ${year}</h1>
        ${month < 12 && html`<a href="/?month=${month + 1}">Next month</a>`}
      </div>
      <table>
        <tbody>
          ${lines}
        </tbody>
      </table>`,
  })
}

function editor({ id, title, day, time }: Meeting, _query: unknown) {
  const start = day === '' ? 3 : Number(day.slice(5, 7))
  const all = Array.from({ length: 12 }, (_, n) => n + 1).map(
    (month) =>
      html`<div class="month" data-month="${month}" ${month !== start && html` hidden`}>
        <b>${months[month - 1] ?? ''} ${year}</b><br />${weeks(month).map(
          (week) =>
            html`${week.map((d) => d !== null && html`<button type="button" class="plain day" data-day="${dayOf(month, d)}" aria-label="${said(dayOf(month, d))}">${d}</button>`)}<br />`,
        )}
      </div>`,
  )
  return page({
    title: 'Calendar',
    bar: [['Calendar', '/']],
    style: '.day{width:44px}#picker{background:#fff;border:1px solid #99a;padding:8px;max-width:340px}',
    body: html`<h1>${id === '' ? 'New meeting' : title}</h1>
      ${form(
        'save',
        html`${hidden('id', id)}
          <p>${field('Title', 'title', { value: title, size: 30 })}</p>
          <p>${field('Time', 'time', { value: time, size: 6 })}</p>
          <input type="hidden" name="day" value="${day}" />
          <p>
            <button type="button" class="plain" id="open">Pick a day</button>
            <span id="chosen">${day === '' ? 'no day yet' : said(day)}</span>
          </p>
          <div id="picker" hidden>
            <button type="button" class="plain" data-step="-1">Earlier</button>
            <button type="button" class="plain" data-step="1">Later</button>${all}
          </div>
          <p><button>Save</button></p>`,
      )}${id !== '' && act('cancel', 'Cancel meeting', { id }, { plain: true })}`,
    script: `
const picker=document.getElementById('picker');let month=${start};
document.getElementById('open').onclick=()=>{picker.hidden=!picker.hidden};
const show=()=>{for(const m of picker.querySelectorAll('.month'))m.hidden=+m.dataset.month!==month};
for(const b of picker.querySelectorAll('[data-step]'))b.onclick=()=>{month=Math.min(12,Math.max(1,month+ +b.dataset.step));show()};
for(const b of picker.querySelectorAll('[data-day]'))b.onclick=()=>{document.querySelector('[name=day]').value=b.dataset.day;document.getElementById('chosen').textContent=b.getAttribute('aria-label');picker.hidden=true};`,
  })
}
