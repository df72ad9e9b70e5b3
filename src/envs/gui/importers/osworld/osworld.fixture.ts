/**
 * Two task files in OSWorld's form: members, step types and rules as in
 * `evaluation_examples/examples/os/e0df059f-28a6-4169-924f-b9623e7184cc.json` and
 * `evaluation_examples/examples/chrome/*.json` of ljxpython/OSWorldUse at b5007a9; the words are ours.
 */
export const renameTask = {
  id: 'e0df059f-28a6-4169-924f-b9623e7184cc',
  snapshot: 'os',
  instruction: 'On the desktop there is a folder todo_list_Jan_1. Give it the name todo_list_Jan_2.',
  source: 'https://help.ubuntu.com/lts/ubuntu-help/files-rename.html.en',
  trajectory: 'trajectories/',
  config: [
    {
      type: 'execute',
      parameters: { command: 'echo {CLIENT_PASSWORD} | sudo -S mkdir ~/Desktop/todo_list_Jan_1', shell: true },
    },
    {
      type: 'execute',
      parameters: {
        command: [
          'python',
          '-c',
          'import pyautogui; import time; pyautogui.click({SCREEN_WIDTH_HALF}, {SCREEN_HEIGHT_HALF}); time.sleep(0.5);',
        ],
      },
    },
  ],
  related_apps: ['os'],
  evaluator: {
    func: 'exact_match',
    result: {
      type: 'vm_command_line',
      command: "[ -d ~/Desktop/todo_list_Jan_2 ] && echo 'Directory exists.' || echo 'Directory does not exist.'",
      shell: true,
    },
    expected: { type: 'rule', rules: { expected: 'Directory exists.\n' } },
  },
  proxy: false,
}

export const searchTask = {
  id: '06fe7178-0000-4000-8000-2e2bc9502122',
  snapshot: 'chrome',
  instruction: 'Open the tab that was closed last again.',
  source: '',
  config: [
    { type: 'launch', parameters: { command: ['google-chrome', '--remote-debugging-port=1337'] } },
    { type: 'launch', parameters: { command: ['socat', 'tcp-listen:9222,fork', 'tcp:localhost:1337'] } },
    { type: 'chrome_open_tabs', parameters: { urls_to_open: ['https://a.example', 'https://b.example'] } },
    { type: 'chrome_close_tabs', parameters: { urls_to_close: ['https://b.example'] } },
  ],
  related_apps: ['chrome'],
  evaluator: {
    func: 'is_expected_tabs',
    result: { type: 'open_tabs_info' },
    expected: { type: 'rule', rules: { type: 'url', urls: ['https://a.example', 'https://b.example'] } },
  },
  proxy: true,
}

/** {@link renameTask} with a terminal on the desktop, in front. */
export const terminalTask = {
  ...renameTask,
  config: [
    ...renameTask.config,
    { type: 'launch', parameters: { command: ['xterm', '-geometry', '80x24+40+40', '-T', 'Terminal'] } },
    { type: 'activate_window', parameters: { window_name: 'Terminal' } },
  ],
  evaluator: {
    ...renameTask.evaluator,
    // The shell of the terminal has done what it was told. Where it was told nothing this waits to its end.
    postconfig: [
      {
        type: 'execute',
        parameters: {
          command: 'for n in $(seq 100); do [ -d ~/Desktop/todo_list_Jan_2 ] && break; sleep 0.05; done',
          shell: true,
        },
      },
    ],
  },
}

/** How {@link terminalTask} is shown and solved. */
export const terminalSet = {
  screen: { width: 1024, height: 768 },
  oracles: {
    [renameTask.id]: [
      { tool: 'computer', args: { action: 'click', x: 300, y: 200 } },
      {
        tool: 'computer',
        args: { action: 'type', text: 'mv ~/Desktop/todo_list_Jan_1 ~/Desktop/todo_list_Jan_2\n' },
      },
      { tool: 'computer', args: { action: 'done' } },
    ],
  },
}
