/** `paddock desktop`: a desktop behind OSWorld's routes, until Ctrl-C, which OSWorld's own client drives unchanged. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { requireDocker } from '../../src/testing/sandbox/index.ts'
import { launcher, paddock } from '../cli/paddock.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { installedPython } from './clients.ts'

/** As it is published for Python. It asks for much that its client does not need. */
const osworld = 'desktop-env==1.0.2'

const program = `
import json, requests, sys
from desktop_env.controllers.python import PythonController
c = PythonController('127.0.0.1', int(sys.argv[1]))
c.retry_interval = 0.2
out = {'picture': c.get_screenshot()[:4].hex(), 'tree': c.get_accessibility_tree()[:14], 'terminal': c.get_terminal_output(),
       'size': c.get_vm_screen_size(), 'platform': c.get_vm_platform(), 'desktop': c.get_vm_desktop_path()}
c.execute_python_command("pyautogui.moveTo(10, 10)")
for action in [
    {'action_type': 'MOVE_TO', 'parameters': {'x': 100, 'y': 120}},
    {'action_type': 'CLICK', 'parameters': {'button': 'left', 'x': 130, 'y': 167, 'num_clicks': 1}},
    {'action_type': 'TYPING', 'parameters': {'text': "It's < \\"this\\""}},
    {'action_type': 'PRESS', 'parameters': {'key': 'enter'}},
    {'action_type': 'KEY_DOWN', 'parameters': {'key': 'shift'}}, {'action_type': 'KEY_UP', 'parameters': {'key': 'shift'}},
    {'action_type': 'MOUSE_DOWN', 'parameters': {'button': 'left'}}, {'action_type': 'MOUSE_UP', 'parameters': {'button': 'left'}},
    {'action_type': 'HOTKEY', 'parameters': {'keys': ['ctrl', 'a']}},
    {'action_type': 'SCROLL', 'parameters': {'dx': 0, 'dy': -3}},
    {'action_type': 'DOUBLE_CLICK', 'parameters': {}}, {'action_type': 'RIGHT_CLICK', 'parameters': {}},
    {'action_type': 'DRAG_TO', 'parameters': {'x': 200, 'y': 170}}, {'action_type': 'WAIT'}, 'DONE']:
    c.execute_action(action)
# Its agents ask where the pointer is, by no method of it.
out['cursor'] = requests.get(c.http_server + '/cursor_position').json()
out['script'] = c.run_python_script('print(6*7)')['output']
out['bash'] = c.run_bash_script('echo out; echo err >&2; exit 3', 10)
out['file'] = c.get_file('/etc/hostname').decode()
print(json.dumps(out))
`

describe.runIf(await requireDocker())('paddock desktop', () => {
  let directory: string
  let child: ReturnType<typeof spawn>
  let url: string
  beforeAll(async () => {
    directory = tempDir()
    const args = ['desktop', '--port', '0', '--screen', '800x600', '--json', '--data', directory]
    child = spawn(launcher, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    if (child.stdout === null) throw new Error('no output')
    const gone = once(child, 'exit').then(([code]) => Promise.reject(new Error(`it ended with ${String(code)}`)))
    const [line] = (await Promise.race([once(createInterface(child.stdout), 'line'), gone])) as [string]
    gone.catch(() => undefined)
    ;({ url } = JSON.parse(line) as { readonly url: string })
  })

  it("is driven by OSWorld's own client", async () => {
    const { port } = new URL(url)
    const python = await installedPython(['requests==2.34.2'], [osworld])
    const { stdout } = await promisify(execFile)(python, ['-c', program, port])
    expect(JSON.parse(stdout)).toMatchObject({
      picture: '89504e47',
      tree: '<desktop-frame',
      terminal: null,
      size: { width: 800, height: 600 },
      platform: 'Linux',
      desktop: '/home/user/Desktop',
      cursor: [200, 170],
      script: '42\n',
      bash: { status: 'error', output: 'out\nerr\n', returncode: 3 },
      file: 'box\n',
    })
  })

  it('serves a screen, and ends with Ctrl-C', async () => {
    const response = await fetch(`${url}/screen_size`, { method: 'POST' })
    expect(await response.json()).toEqual({ width: 800, height: 600 })
    child.kill('SIGINT')
    expect(await once(child, 'close')).toEqual([0, null])
    await expect(fetch(`${url}/platform`)).rejects.toThrow()
  })

  it('says what is wrong with its options', async () => {
    const ended = await paddock(['desktop', '--screen', 'large', '--data', directory])
    expect(ended).toMatchObject({ code: 2, err: expect.stringMatching(/1280x720/) })
  })
})
