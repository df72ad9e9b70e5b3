import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** In the form of libs/cua-bench/datasets/cua-bench-basic of trycua/cua at b296ec9; the task is ours. */
export function writeTasks(directory: string): void {
  const task = join(directory, 'write-word')
  mkdirSync(join(task, 'gui'), { recursive: true })
  writeFileSync(join(task, 'main.py'), mainPy)
  writeFileSync(join(task, 'gui', 'index.html'), indexHtml)
}

const mainPy = `
from pathlib import Path
import cua_bench as cb

@cb.tasks_config(split="train")
def load():
    return [cb.Task(description=f'Write "{word}" and press Send.', metadata={"word": word}) for word in ["heron", "otter"]]

pid = None

@cb.setup_task(split="train")
async def start(task_cfg: cb.Task, session: cb.DesktopSession):
    global pid
    print("set up")
    html = (Path(__file__).parent / "gui/index.html").read_text("utf-8")
    pid = await session.launch_window(html=html, title="Task", width=400, height=300)

@cb.evaluate_task(split="train")
async def evaluate(task_cfg: cb.Task, session: cb.DesktopSession) -> list[float]:
    sent = await session.execute_javascript(pid, "window.__sent")
    return [1.0 if sent == task_cfg.metadata["word"] else 0.0, 0.5]

@cb.solve_task(split="train")
async def solve(task_cfg: cb.Task, session: cb.DesktopSession):
    rect = await session.execute_javascript(pid, "(() => { const r = document.querySelector('#word').getBoundingClientRect(); return {x: r.left + window.screenX + 5, y: r.top + window.screenY + 5} })()")
    await session.execute_action(cb.ClickAction(x=rect["x"], y=rect["y"]))
    await session.execute_action(cb.TypeAction(text=task_cfg.metadata["word"]))
    await session.click_element(pid, "#send")

if __name__ == "__main__":
    cb.interact(__file__)
`

const indexHtml = `<main><input id="word" aria-label="Word"><button id="send">Send</button>
<script>send.onclick = () => { window.__sent = document.getElementById('word').value }</script></main>`
