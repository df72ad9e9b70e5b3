import { gui } from '../../../../kits/environment.ts'

const { act, choice, colours, defineApp, field, form, hidden, html, page, steps, table, things } = gui

interface Product {
  readonly id: string
  readonly name: string
  readonly category: string
  readonly price: number
  stock: number
}
interface Order {
  readonly lines: Readonly<Record<string, number>>
  readonly address: string
  readonly shipping: string
  readonly coupon: string
}
interface Shop {
  products: Product[]
  cart: Record<string, number>
  coupon: string
  orders: Order[]
  wishlist: string[]
}

const categories = ['Home', 'Travel', 'Office'] as const
const shippings = ['Standard', 'Express', 'Pick-up'] as const
const coupon = 'SPRING'
const perPage = 6
const bar = [
  ['Catalogue', '/'],
  ['Cart', '/cart'],
  ['Wish list', '/wishlist'],
] as const
const euros = (cents: number): string => `${(cents / 100).toFixed(2)} EUR`
const { click, type, select, look, done, answer, q } = steps

/** A shop of several pages: search, products, cart, checkout. */
export const shop = defineApp<Shop>({
  name: 'shop',
  apiVersion: 1,
  start: (d) => {
    const names = d.shuffled(
      things.flatMap((thing) =>
        d
          .shuffled(colours)
          .slice(0, 2)
          .map((c) => `${c} ${thing}`),
      ),
    )
    const prices = d.shuffled(names.map((_, at) => 500 + at * 137))
    return {
      products: names.slice(0, 18).map((name, at) => ({
        id: `p${at + 1}`,
        name,
        category: d.pick(categories),
        price: prices[at] ?? 500,
        stock: d.between(4, 20),
      })),
      cart: {},
      coupon: '',
      orders: [],
      wishlist: [],
    }
  },
  page: (path, query, state) => {
    if (path === '/') return catalogue(state, query['q'] ?? '', Number(query['page'] ?? 1))
    if (path === '/cart') return cart(state, query['error'] ?? '')
    if (path === '/checkout') return checkout()
    if (path === '/thanks') {
      return page({
        title: 'Shop',
        bar,
        body: html`<h1>Thank you</h1>
          <p>Your order was placed.</p>`,
      })
    }
    if (path === '/wishlist') {
      const list = state.wishlist.map((id) => html`<li>${nameOf(state, id)}</li>`)
      return page({
        title: 'Shop',
        bar,
        body: html`<h1>Wish list</h1>
          <ul>
            ${list}
          </ul>`,
      })
    }
    const product = state.products.find(({ id }) => path === `/product/${id}`)
    return product === undefined ? null : productPage(product)
  },
  act: (op, fields, state) => {
    const product = state.products.find(({ id }) => id === fields['id'])
    switch (op) {
      case 'add': {
        const quantity = Number(fields['quantity'])
        if (product === undefined || !Number.isInteger(quantity) || quantity < 1) return '!Give a quantity from 1.'
        if (quantity > product.stock) return `!Only ${product.stock} are in stock.`
        state.cart[product.id] = (state.cart[product.id] ?? 0) + quantity
        return '/cart'
      }
      case 'remove':
        if (product !== undefined) delete state.cart[product.id]
        return '/cart'
      case 'wish':
        if (product !== undefined && !state.wishlist.includes(product.id)) state.wishlist.push(product.id)
        return '/wishlist'
      case 'coupon':
        if (fields['code'] !== coupon) return '/cart?error=This+code+is+not+valid.'
        state.coupon = coupon
        return '/cart'
      case 'order': {
        const address = (fields['address'] ?? '').trim()
        if (Object.keys(state.cart).length === 0) return '!The cart is empty.'
        if (address === '') return '!Give an address.'
        state.orders.push({ lines: state.cart, address, shipping: fields['shipping'] ?? '', coupon: state.coupon })
        state.cart = {}
        state.coupon = ''
        return '/thanks'
      }
      default:
        return '!Unknown.'
    }
  },
  goals: {
    'buy-one': (d, state) => {
      const product = d.pick(state.products)
      const other = state.products.find(({ id }) => id !== product.id) ?? product
      const quantity = d.between(2, 4)
      const address = `${d.between(2, 90)} Mill Lane`
      const shipping = d.pick(shippings.slice(1))
      const buy = (name: string) => [look(), ...found(name), ...add(quantity), ...order(address, shipping)]
      return {
        instruction: `In the shop, order ${quantity} pieces of "${product.name}" to the address "${address}" with ${shipping} shipping.`,
        change: (s) => {
          s.orders.push({ lines: { [product.id]: quantity }, address, shipping, coupon: '' })
        },
        oracle: [...buy(product.name), done()],
        near: [...buy(other.name), done()],
      }
    },
    'buy-cheapest': (d, state) => {
      const category = d.pick(categories.filter((c) => state.products.filter((p) => p.category === c).length > 1))
      const sorted = state.products.filter((p) => p.category === category).toSorted((a, b) => a.price - b.price)
      const [cheapest, dearer] = sorted
      const address = `${d.between(2, 90)} Harbour Road`
      const buy = (name: string) => [look(), ...found(name), ...add(1), ...order(address, 'Standard')]
      return {
        instruction: `In the shop, order one piece of the cheapest product of the category ${category} to "${address}" with Standard shipping.`,
        change: (s) => {
          s.orders.push({ lines: { [cheapest?.id ?? '']: 1 }, address, shipping: 'Standard', coupon: '' })
        },
        oracle: [...buy(cheapest?.name ?? ''), done()],
        near: [...buy(dearer?.name ?? ''), done()],
      }
    },
    coupon: (d, state) => {
      const product = d.pick(state.products)
      const address = `${d.between(2, 90)} Station Square`
      const apply = [type('textbox "Coupon code"', coupon), click('button "Apply"')]
      const steps = (withCoupon: boolean) => [
        look(),
        ...found(product.name),
        ...add(1),
        ...(withCoupon ? apply : []),
        ...order(address, 'Express'),
      ]
      return {
        instruction: `Order one "${product.name}" from the shop to "${address}" with Express shipping, and use the coupon code ${coupon}.`,
        change: (s) => {
          s.orders.push({ lines: { [product.id]: 1 }, address, shipping: 'Express', coupon })
        },
        oracle: [...steps(true), done()],
        near: [...steps(false), done()],
      }
    },
    'wish-list': (d, state) => {
      const [first, second, third] = d.shuffled(state.products)
      const wish = (name: string) => [...found(name), click('button "Add to wish list"'), click('link "Catalogue"')]
      const names = [first?.name ?? '', second?.name ?? '']
      return {
        instruction: `Put "${names[0]}" and then "${names[1]}" on the wish list of the shop. Order nothing.`,
        change: (s) => {
          s.wishlist = [first?.id ?? '', second?.id ?? '']
        },
        oracle: [look(), ...names.flatMap(wish), done()],
        near: [look(), ...[names[0] ?? '', third?.name ?? ''].flatMap(wish), done()],
      }
    },
    price: (d, state) => {
      const product = d.pick(state.products)
      const wrong = state.products.find((p) => p.price !== product.price) ?? product
      return {
        instruction: `What does "${product.name}" cost in the shop? Answer with the number only, such as 12.34. Change nothing.`,
        answer: (product.price / 100).toFixed(2),
        oracle: [look(), ...found(product.name), answer((product.price / 100).toFixed(2))],
        near: [look(), answer((wrong.price / 100).toFixed(2))],
      }
    },
  },
})

function found(name: string) {
  return [type('searchbox "Search"', name), click('button "Find"'), click(`link ${q(name)}`)]
}

function add(quantity: number) {
  return [type('spinbutton "Quantity"', String(quantity)), click('button "Add to cart"')]
}

function order(address: string, shipping: string) {
  return [
    click('link "Check out"'),
    type('textbox "Address"', address),
    select('combobox "Shipping"', shipping),
    click('button "Place order"'),
  ]
}

function catalogue({ products }: Shop, words: string, at: number) {
  const fitting = products.filter(({ name }) => name.includes(words.toLowerCase().trim()))
  const shown = fitting.slice((at - 1) * perPage, at * perPage)
  const pages = Array.from({ length: Math.ceil(fitting.length / perPage) }, (_, n) => n + 1)
  const rows = shown.map(({ id, name, category, price }) => ({
    name,
    cells: [html`<a href="/product/${id}">${name}</a>`, category, euros(price)],
  }))
  const links = pages.map((n) => html`<a href="/?q=${encodeURIComponent(words)}&page=${n}">Page ${n}</a> `)
  return page({
    title: 'Shop',
    bar,
    body: html`<h1>Catalogue</h1>
      <form action="/">
        <input type="search" name="q" aria-label="Search" value="${words}" /> <button>Find</button>
      </form>
      <p class="muted">${fitting.length} products</p>
      ${table(['Product', 'Category', 'Price'], rows)}
      <p>${links}</p>`,
  })
}

function productPage({ id, name, category, price, stock }: Product) {
  return page({
    title: 'Shop',
    bar,
    body: html`<h1>${name}</h1>
      <p>${category}, ${euros(price)}, ${stock} in stock</p>
      ${form('add', html`${hidden('id', id)}${field('Quantity', 'quantity', { type: 'number', value: 1, size: 4 })} <button>Add to cart</button>`)}
      <p>${act('wish', 'Add to wish list', { id }, { plain: true })}</p>`,
  })
}

function cart(state: Shop, error: string) {
  const rows = Object.entries(state.cart).map(([id, quantity]) => ({
    name: nameOf(state, id),
    cells: [nameOf(state, id), quantity, act('remove', 'Remove', { id }, { plain: true })],
  }))
  return page({
    title: 'Shop',
    bar,
    body: html`<h1>Cart</h1>
      ${error !== '' && html`<p class="error">${error}</p>`} ${table(['Product', 'Pieces', ''], rows)}
      ${form('coupon', html`${field('Coupon code', 'code', { size: 12 })} <button class="plain">Apply</button>`)}
      <p>${state.coupon !== '' && html`Coupon ${state.coupon} is applied.`}</p>
      <p><a href="/checkout">Check out</a></p>`,
  })
}

function checkout() {
  return page({
    title: 'Shop',
    bar,
    body: html`<h1>Check out</h1>
      ${form(
        'order',
        html`<p>${field('Address', 'address', { size: 40 })}</p>
          <p>${choice('Shipping', 'shipping', shippings, 'Standard')}</p>
          <button>Place order</button>`,
      )}`,
  })
}

function nameOf({ products }: Shop, id: string): string {
  return products.find((p) => p.id === id)?.name ?? ''
}
