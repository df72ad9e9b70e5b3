/** Where the page tells the host of its episode. */
export const episodePath = '/paddock/episode'

/**
 * What is served behind `core.js`, once for each attempt. It starts the episode on the seed when the page is loaded, and
 * tells the host of its start and of its end, under a key that nobody else is given: `core.js` fetched again has none. It
 * takes what it needs of the page's globals before any script of the page can change it, and wraps `core.endEpisode` for
 * good. Names of the page's interface: miniwob/html/core/core.js at 3f461ff.
 */
export function wireScript(o: {
  readonly key: string
  readonly seed: number
  readonly seconds: number | null
}): string {
  return `
;(() => {
  const key = ${JSON.stringify(o.key)}
  const [send, write, wait, StackOf] = [window.fetch.bind(window), JSON.stringify, window.setTimeout.bind(window), Error]
  const tell = (facts) => send(${JSON.stringify(episodePath)}, { method: 'POST', headers: { 'x-episode': key }, body: write(facts) })
  const ended = core.endEpisode
  let running = false
  const endEpisode = function (reward, scaled, reason) {
    const counts = running && core.EP_TIMER !== null
    ended.call(core, reward, scaled, reason)
    if (!counts) return
    running = false
    tell({ what: 'end', raw: +reward, scaled: scaled === true, reason: reason === undefined ? null : '' + reason, stack: new StackOf().stack })
  }
  Object.defineProperty(core, 'endEpisode', { value: endEpisode, writable: false, configurable: false })
  const start = () => {
    if (core.cover_div === null || document.getElementById('reward-display') === null) return wait(start, 20)
    Math.seedrandom(${o.seed})
    ${o.seconds === null ? '' : `core.EPISODE_MAX_TIME = ${Math.round(o.seconds * 1000)}`}
    core.startEpisodeReal()
    core.hideDisplay()
    running = true
    ready()
  }
  const ready = () => {
    if (!WOB_TASK_READY) return wait(ready, 20)
    const said = core.getUtterance()
    tell({ what: 'start', utterance: typeof said === 'string' ? said : '' + said.utterance, milliseconds: core.EPISODE_MAX_TIME })
  }
  window.addEventListener('load', () => wait(start, 0))
})()
`
}
