import { gui } from '../../../../kits/environment.ts'

const { choice, cities, defineApp, field, form, hidden, html, page, people, radios, steps, tick } = gui

interface Booking {
  readonly name: string
  readonly city: string
  readonly nights: number
  readonly room: string
  readonly extras: readonly string[]
  readonly payment: string
}
interface Wizard {
  bookings: Booking[]
}

const rooms = ['Single', 'Double', 'Suite'] as const
const extras = ['Breakfast', 'Parking', 'Late checkout', 'Baby cot'] as const
const payments = ['Card', 'Invoice', 'Cash'] as const
const { click, type, select, look, done, q } = steps

/** A booking in four steps, each with checks of its own; nothing is kept before the last. */
export const wizard = defineApp<Wizard>({
  name: 'wizard',
  apiVersion: 1,
  start: () => ({ bookings: [] }),
  page: (path, query, state) => {
    const step = ['/', '/room', '/extras', '/confirm'].indexOf(path)
    if (path === '/booked') {
      return page({
        title: 'Booking',
        bar: [['New booking', '/']],
        body: html`<h1>Booked</h1>
          <p>${state.bookings.length} bookings so far.</p>`,
      })
    }
    return step === -1 ? null : stepPage(step, query)
  },
  act: (op, fields, state) => {
    const { name = '', city = '', nights = '', room = '', extra = '', payment = '', terms = '' } = fields
    const chosen = extra === '' ? [] : extra.split(',')
    const forward = (path: string) => `${path}?${new URLSearchParams({ name, city, nights, room, extra }).toString()}`
    switch (op) {
      case 'who':
        if (name.trim().length < 3) return '!Give the name of the guest.'
        return forward('/room')
      case 'room':
        if (!/^[1-9]\d?$/.test(nights)) return '!Give the nights from 1 to 99.'
        if (!rooms.some((one) => one === room)) return '!Choose a room.'
        return forward('/extras')
      case 'extras':
        return forward('/confirm')
      case 'book': {
        if (terms !== 'on') return '!Accept the terms.'
        if (!payments.some((one) => one === payment)) return '!Choose how to pay.'
        state.bookings.push({ name: name.trim(), city, nights: Number(nights), room, extras: chosen, payment })
        return '/booked'
      }
      default:
        return '!Unknown.'
    }
  },
  goals: {
    'book-simple': (d) => {
      const booking = bookingOf(d.pick(people), d.pick(cities), d.between(2, 9), d.pick(rooms), [], 'Card')
      return goal(booking, { ...booking, nights: booking.nights + 1 })
    },
    'book-extras': (d) => {
      const chosen = extras.filter((_, at) => at === d.between(0, 1) || at === d.between(2, 3))
      const list = chosen.length > 0 ? chosen : [extras[1]]
      const booking = bookingOf(d.pick(people), d.pick(cities), d.between(2, 9), d.pick(rooms), list, d.pick(payments))
      return goal(booking, { ...booking, extras: [] })
    },
    'book-by-invoice': (d) => {
      const booking = bookingOf(d.pick(people), d.pick(cities), d.between(10, 30), 'Suite', ['Parking'], 'Invoice')
      return goal(booking, { ...booking, payment: 'Cash' })
    },
    'book-twice': (d) => {
      const first = bookingOf(d.pick(people.slice(0, 6)), d.pick(cities), d.between(1, 5), 'Single', [], 'Card')
      const second = bookingOf(d.pick(people.slice(6)), first.city, first.nights, 'Double', ['Breakfast'], 'Card')
      return {
        instruction: `Make two bookings, in this order. ${told(first)} ${told(second)}`,
        change: (s: Wizard) => {
          s.bookings.push(first, second)
        },
        oracle: [look(), ...book(first), click('link "New booking"'), ...book(second), done()],
        near: [look(), ...book(second), click('link "New booking"'), ...book(first), done()],
      }
    },
  },
})

function bookingOf(
  name: string,
  city: string,
  nights: number,
  room: string,
  list: readonly string[],
  payment: string,
): Booking {
  return { name, city, nights, room, extras: [...list], payment }
}

function goal(booking: Booking, wrong: Booking) {
  return {
    instruction: `Make a booking. ${told(booking)}`,
    change: (s: Wizard) => {
      s.bookings.push(booking)
    },
    oracle: [look(), ...book(booking), done()],
    near: [look(), ...book(wrong), done()],
  }
}

function told({ name, city, nights, room, extras: list, payment }: Booking): string {
  const more = list.length === 0 ? 'without extras' : `with these extras only: ${list.join(', ')}`
  return `Guest ${name}, in ${city}, ${nights} nights, room ${room}, ${more}, paid by ${payment}.`
}

function book({ name, city, nights, room, extras: list, payment }: Booking) {
  return [
    type('textbox "Guest"', name),
    select('combobox "City"', city),
    click('button "Next"'),
    type('spinbutton "Nights"', String(nights)),
    click(`radio ${q(room)}`),
    click('button "Next"'),
    ...list.map((extra) => click(`checkbox ${q(extra)}`)),
    click('button "Next"'),
    click(`radio ${q(payment)}`),
    click('checkbox "I accept the terms"'),
    click('button "Book"'),
  ]
}

function stepPage(step: number, query: Readonly<Record<string, string>>) {
  const kept = ['name', 'city', 'nights', 'room', 'extra'].map((name) => hidden(name, query[name] ?? ''))
  const without = (...names: readonly string[]) =>
    ['name', 'city', 'nights', 'room', 'extra'].filter((n) => !names.includes(n)).map((n) => hidden(n, query[n] ?? ''))
  const bodies = [
    form(
      'who',
      html`${without('name', 'city')}
        <p>${field('Guest', 'name', { size: 30 })}</p>
        <p>${choice('City', 'city', cities, cities[0])}</p>
        <button>Next</button>`,
    ),
    form(
      'room',
      html`${without('nights', 'room')}
        <p>${field('Nights', 'nights', { type: 'number', size: 4 })}</p>
        <fieldset>
          <legend>Room</legend>
          ${radios('room', rooms, '')}
        </fieldset>
        <button>Next</button>`,
    ),
    form(
      'extras',
      html`${without('extra')}${extras.map((extra) => html`<p>${tick(extra, 'extra', false, extra)}</p>`)}<button>
          Next
        </button>`,
    ),
    form(
      'book',
      html`${kept}
        <p>
          ${query['name'] ?? ''}, ${query['city'] ?? ''}, ${query['nights'] ?? ''} nights, ${query['room'] ?? ''},
          ${query['extra'] ?? ''}
        </p>
        <fieldset>
          <legend>Payment</legend>
          ${radios('payment', payments, '')}
        </fieldset>
        <p>${tick('I accept the terms', 'terms', false)}</p>
        <button>Book</button>`,
    ),
  ]
  return page({
    title: 'Booking',
    bar: [['New booking', '/']],
    body: html`<h1>Step ${step + 1} of 4</h1>
      ${bodies[step] ?? null}`,
  })
}
