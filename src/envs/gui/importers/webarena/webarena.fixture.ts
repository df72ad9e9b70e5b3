import { createServer, type Server } from 'node:http'

/** Members and placeholders as in config_files/test.raw.json of web-arena-x/webarena at f62e0b9; the words are ours. */
export const row = (id: number, evaluation: object, more: object = {}) => ({
  sites: ['shopping'],
  task_id: id,
  require_login: false,
  storage_state: null,
  start_url: '__SHOPPING__',
  geolocation: null,
  intent_template: '',
  instantiation_dict: {},
  intent: 'Put the lamp into the cart and say what it costs.',
  require_reset: false,
  eval: { reference_answers: null, reference_url: null, program_html: null, ...evaluation },
  ...more,
})
export const whole = row(7, {
  eval_types: ['string_match', 'url_match', 'program_html'],
  reference_answers: { must_include: ['42'] },
  reference_url: '__SHOPPING__/cart',
  url_note: 'GOLD in PRED',
  program_html: [
    {
      url: '__SHOPPING__/orders',
      locator: "document.querySelector('#cart').outerText",
      required_contents: { must_include: ['Lamp |OR| Torch', 'R&B'] },
    },
  ],
})

/** {@link whole} for somebody who is logged in. */
export const cartTask = { ...whole, storage_state: './.auth/shopping_state.json' }
export const shoppingState = {
  cookies: [
    {
      name: 'user',
      value: 'ada',
      domain: '127.0.0.1',
      path: '/',
      expires: -1,
      httpOnly: true,
      secure: false,
      sameSite: 'Lax',
    },
  ],
  origins: [],
}
/** How {@link cartTask} is solved; `sites` and the file of {@link shoppingState} are to be given. */
export const cartSet = {
  auth: 'auth',
  oracles: {
    'webarena-7': [
      { tool: 'browser_snapshot', args: {} },
      { tool: 'browser_click', args: { target: 'button "Add the lamp"' } },
      { tool: 'computer', args: { action: 'answer', text: 'It costs $42.' } },
    ],
  },
}

/** A shop: who has no cookie is to log in, a cart is the session's, a redirect follows each change. */
export function shopServer(): Server {
  return createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://shop')
    const cookies = request.headers.cookie ?? ''
    const page = (body: string) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html>${body}`)
    const go = (to: string, cookie: readonly string[]) =>
      response.writeHead(303, { location: to, 'set-cookie': [...cookie] }).end()
    if (request.method === 'POST')
      return void request.resume().on('end', () => go('/cart', ['cart=lamp; Path=/', 'seen=1; Path=/; HttpOnly']))
    if (!cookies.includes('user=ada')) return void page('<h1>Log in</h1>')
    if (pathname === '/cart' || pathname === '/orders') {
      return void page(
        `<p id=cart>${cookies.includes('cart=lamp') && cookies.includes('seen=1') ? 'Lamp &amp; R&amp;B' : 'empty'}</p>`,
      )
    }
    return void page('<h1>Shop</h1><p>Lamp: $42</p><form method=post action=/add><button>Add the lamp</button></form>')
  })
}
