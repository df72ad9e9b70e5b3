import { gui } from '../../../../kits/environment.ts'

const { act, choice, defineApp, field, form, hidden, html, page, radios, steps, table, tick } = gui

interface Settings {
  name: string
  language: string
  theme: string
  volume: number
  alerts: { mail: boolean; sound: boolean; phone: boolean }
  privacy: string
  devices: string[]
}

const languages = ['English', 'Deutsch', 'Français', 'Türkçe', 'Svenska'] as const
const themes = ['Light', 'Dark', 'Contrast'] as const
const levels = ['Everyone', 'Friends', 'Nobody'] as const
const devices = ['Old phone', 'Work laptop', 'Tablet', 'Kitchen radio', 'Guest laptop', 'Car'] as const
const alertNames = ['mail', 'sound', 'phone'] as const
const tabs = ['General', 'Alerts', 'Privacy', 'Devices'] as const
const { click, type, select, press, look, done, dialog, q } = steps

/** Settings in tabs, with switches, a slider, radio buttons and dialogs that ask back. */
export const settings = defineApp<Settings>({
  name: 'settings',
  apiVersion: 1,
  start: (d) => ({
    name: d.pick(['Ada', 'Bo', 'Chidi']),
    language: 'English',
    theme: d.pick(themes),
    volume: d.between(3, 7) * 10,
    alerts: { mail: d.pick([true, false]), sound: d.pick([true, false]), phone: d.pick([true, false]) },
    privacy: d.pick(levels),
    devices: [...d.shuffled(devices)].slice(0, 4),
  }),
  page: (path, query, state) => {
    if (path !== '/') return null
    const tab = tabs.find((name) => name === query['tab']) ?? 'General'
    return tabPage(state, tab)
  },
  act: (op, fields, state) => {
    switch (op) {
      case 'general': {
        const name = (fields['name'] ?? '').trim()
        const volume = Number(fields['volume'])
        if (name === '') return '!The name is empty.'
        if (!Number.isInteger(volume) || volume < 0 || volume > 100) return '!The volume is from 0 to 100.'
        const { language = state.language, theme = state.theme } = fields
        Object.assign(state, { name, language, theme, volume })
        return '/?tab=General'
      }
      case 'alerts':
        for (const name of alertNames) state.alerts[name] = fields[name] === 'on'
        return '/?tab=Alerts'
      case 'privacy':
        state.privacy = levels.find((level) => level === fields['privacy']) ?? state.privacy
        return '/?tab=Privacy'
      case 'forget':
        state.devices = state.devices.filter((name) => name !== fields['device'])
        return '/?tab=Devices'
      default:
        return '!Unknown.'
    }
  },
  goals: {
    theme: (d, state) => {
      const [theme, other] = d.shuffled(themes.filter((name) => name !== state.theme))
      const set = (name = '') => [look(), click(`radio ${q(name)}`), click('button "Save"'), done()]
      return {
        instruction: `Change the theme in the settings to ${theme}.`,
        change: (s) => {
          s.theme = theme ?? ''
        },
        oracle: set(theme),
        near: set(other),
      }
    },
    'name-and-language': (d, state) => {
      const name = `${state.name} ${d.pick(['Stone', 'Rivers', 'Woods'])}`
      const language = d.pick(languages.slice(1))
      const set = (save: boolean) => [
        look(),
        type('textbox "Name"', name),
        select('combobox "Language"', language),
        ...(save ? [click('button "Save"')] : []),
        done(),
      ]
      return {
        instruction: `In the settings, set the name to "${name}" and the language to ${language}, and save.`,
        change: (s) => {
          Object.assign(s, { name, language })
        },
        oracle: set(true),
        near: set(false),
      }
    },
    volume: (d, state) => {
      const steps10 = d.between(1, 3)
      const to = state.volume + steps10 * 10
      const turn = (times: number) => [
        look(),
        click('slider "Volume"'),
        press('Home'),
        ...Array.from({ length: times }, () => press('Right')),
        click('button "Save"'),
        done(),
      ]
      return {
        instruction: `Set the volume slider in the settings to ${to} and save.`,
        change: (s) => {
          s.volume = to
        },
        oracle: turn(to / 10),
        near: turn(to / 10 - 1),
      }
    },
    alerts: (d, state) => {
      const name = d.pick(alertNames)
      const other = alertNames.find((one) => one !== name) ?? 'mail'
      const toggle = (one: string) => [
        look(),
        click('link "Alerts"'),
        click(`checkbox ${q(`Alerts by ${one}`)}`),
        click('button "Save"'),
        done(),
      ]
      return {
        instruction: `Turn alerts by ${name} ${state.alerts[name] ? 'off' : 'on'} in the settings; leave the other alerts as they are.`,
        change: (s) => {
          s.alerts[name] = !s.alerts[name]
        },
        oracle: toggle(name),
        near: toggle(other),
      }
    },
    'forget-device': (d, state) => {
      const [device, other] = d.shuffled(state.devices)
      const forget = (name: string | undefined, accept: boolean) => [
        look(),
        click('link "Devices"'),
        click(`row ${q(name ?? '')} > button "Forget"`),
        dialog(accept),
        done(),
      ]
      return {
        instruction: `Forget the device "${device}" in the settings. The page asks back; confirm it.`,
        change: (s) => {
          s.devices = s.devices.filter((name) => name !== device)
        },
        oracle: forget(device, true),
        near: d.pick([true, false]) ? forget(device, false) : forget(other, true),
      }
    },
  },
})

function tabPage(state: Settings, tab: (typeof tabs)[number]) {
  return page({
    title: 'Settings',
    bar: tabs.map((name) => [name, `/?tab=${name}`] as const),
    body: html`<h1>${tab}</h1>
      ${contentOf(state, tab)}`,
    script:
      "for(const f of document.querySelectorAll('form[aria-label=forget]'))f.onsubmit=()=>confirm('Forget this device? This cannot be undone.');",
  })
}

function contentOf(state: Settings, tab: (typeof tabs)[number]) {
  switch (tab) {
    case 'General':
      return form(
        'general',
        html`<p>${field('Name', 'name', { value: state.name })}</p>
          <p>${choice('Language', 'language', languages, state.language)}</p>
          <fieldset>
            <legend>Theme</legend>
            ${radios('theme', themes, state.theme)}
          </fieldset>
          <p>
            <label
              >Volume <input type="range" name="volume" min="0" max="100" step="10" value="${state.volume}"
            /></label>
          </p>
          <button>Save</button>`,
      )
    case 'Alerts':
      return form(
        'alerts',
        html`${alertNames.map((name) => html`<p>${tick(`Alerts by ${name}`, name, state.alerts[name])}</p>`)}<button>
            Save
          </button>`,
      )
    case 'Privacy':
      return form(
        'privacy',
        html`<fieldset>
            <legend>Who sees my profile</legend>
            ${radios('privacy', levels, state.privacy)}
          </fieldset>
          <button>Save</button>`,
      )
    case 'Devices':
      return html`${table(
        [],
        state.devices.map((device) => ({ name: device, cells: [device, forget(device)] })),
      )}
      ${state.devices.length === 0 && act('none', 'Nothing here')}`
  }
}

function forget(device: string) {
  const inside = html`${hidden('device', device)}<button class="plain">Forget</button>`
  return form('forget', inside, { inline: true, label: 'forget' })
}
