import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * A checkout in the layout of miniwob-plusplus (github.com/Farama-Foundation/miniwob-plusplus at 3f461ff: `miniwob/html`
 * with `core/core.js`, `core/core.css`, `miniwob/<page>.html`). The pages are ours; of `core.js` only the interface that
 * pages and drivers use is written down here, by the names and the order of events that it has there.
 */
export function writeCheckout(directory: string): void {
  for (const [path, text] of Object.entries(files)) {
    const at = join(directory, 'miniwob', 'html', path)
    mkdirSync(dirname(at), { recursive: true })
    writeFileSync(at, text)
  }
}

const core = `var core = {};
var WOB_REWARD_GLOBAL = 0, WOB_RAW_REWARD_GLOBAL = 0, WOB_REWARD_REASON = null, WOB_DONE_GLOBAL = false, WOB_TASK_READY = true;
core.EPISODE_MAX_TIME = 10000; core.EP_TIMER = null; core.ept0 = null; core.cover_div = null;
Math.seedrandom = function (seed) { var s = seed * 7919 + 1; Math.random = function () { s = (s * 48271) % 2147483647; return s / 2147483647; }; };
core.sample = function (list) { return list[Math.floor(Math.random() * list.length)]; };
core.startEpisode = function () {
  if (document.getElementById('reward-display') === null) {
    var display = document.createElement('div'); display.id = 'reward-display'; display.textContent = 'Last reward: -';
    document.body.appendChild(display);
  }
  if (core.cover_div === null) {
    core.cover_div = document.createElement('div'); core.cover_div.id = 'sync-task-cover'; core.cover_div.textContent = 'START';
    core.cover_div.onclick = function () { core.startEpisodeReal(); };
    document.body.appendChild(core.cover_div);
  }
  core.cover_div.style.display = 'block';
};
core.startEpisodeReal = function () {
  genProblem();
  WOB_DONE_GLOBAL = false; WOB_REWARD_GLOBAL = 0; WOB_RAW_REWARD_GLOBAL = 0; WOB_REWARD_REASON = null;
  core.cover_div.style.display = 'none'; core.ept0 = new Date().getTime();
  core.EP_TIMER = setTimeout(function () { core.endEpisode(-1, false, 'timed out'); }, core.EPISODE_MAX_TIME);
};
core.endEpisode = function (reward, time_proportional, reason) {
  if (core.EP_TIMER === null) return;
  clearTimeout(core.EP_TIMER); core.EP_TIMER = null;
  WOB_RAW_REWARD_GLOBAL = reward; WOB_REWARD_REASON = reason;
  WOB_REWARD_GLOBAL = time_proportional ? reward * Math.max(0, 1 - (new Date().getTime() - core.ept0) / core.EPISODE_MAX_TIME) : reward;
  WOB_DONE_GLOBAL = true; core.startEpisode();
};
core.hideDisplay = function () { document.getElementById('reward-display').style.display = 'none'; };
core.getUtterance = function () { return document.getElementById('query').textContent.replace(/\\s+/g, ' ').trim(); };
`

const page = (script: string, area: string) => `<!DOCTYPE html>
<html><head><title>Task</title>
<link rel="stylesheet" type="text/css" href="../core/core.css">
<script src="../core/core.js"></script>
<script>
${script}
window.onload = function () { core.startEpisode(); }
</script></head>
<body><div id="wrap"><div id="query"></div><div id="area">${area}</div></div></body></html>
`

const files: Readonly<Record<string, string>> = {
  'core/core.js': core,
  'core/core.css':
    '#query { background: #ff0; padding: 2px } #sync-task-cover { position: fixed; inset: 0; background: #ccc }',
  'miniwob/press-one.html': page(
    `var genProblem = function () {
  var wanted = core.sample(['Left', 'Right']);
  document.getElementById('query').textContent = 'Press the button ' + wanted + '.';
  ['Left', 'Right'].forEach(function (name) {
    document.getElementById(name).onclick = function () { core.endEpisode(name === wanted ? 1 : -1, name === wanted); };
  });
};`,
    '<button id="Left">Left</button> <button id="Right">Right</button>',
  ),
  'miniwob/write-word.html': page(
    `var genProblem = function () {
  var word = core.sample(['heron', 'otter']);
  document.getElementById('query').innerHTML = 'Enter <b>' + word + '</b> and press Submit.';
  document.getElementById('go').onclick = function () {
    var said = document.getElementById('word').value;
    document.getElementById('echo').innerHTML = said; // as some pages do: what is typed becomes markup
    if (said !== '') core.endEpisode(said === word ? 1 : said[0] === word[0] ? 0.5 : -1, true);
  };
};`,
    '<input id="word" aria-label="Word"> <button id="go">Submit</button><p id="echo"></p>',
  ),
}
