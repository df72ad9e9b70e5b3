/** What the session of a module can do here. */
export const sessionMembers = [
  'launch_window',
  'execute_javascript',
  'get_element_rect',
  'click_element',
  'right_click_element',
  'execute_action',
  'screenshot',
] as const

/**
 * Runs the functions of a task module of cua-bench (`main.py`; docs/content/docs/reference/cua-bench/task-definition.mdx and
 * libs/cua-bench/cua_bench/{decorators,types,computers/base}.py of trycua/cua at b296ec9) under a module `cua_bench` of its
 * own, whose session asks the host. One JSON value a line: the host says what to do, this asks back, and answers at last.
 */
export const moduleProgram = `
import ast, asyncio, dataclasses, importlib.util, json, os, sys, types
wire = os.fdopen(os.dup(1), 'w')
os.dup2(2, 1)

def tell(value):
    wire.write(json.dumps(value) + '\\n')
    wire.flush()

def ask(op, **given):
    tell({'ask': op, **given})
    answer = json.loads(sys.stdin.readline())
    if 'error' in answer:
        raise RuntimeError(answer['error'])
    return answer['value']

@dataclasses.dataclass
class Task:
    description: str
    task_id: str = None
    metadata: dict = None
    computer: dict = None

cb = types.ModuleType('cua_bench')
cb.Task = Task
for name, fields in {
    'ClickAction': ['x', 'y'], 'RightClickAction': ['x', 'y'], 'DoubleClickAction': ['x', 'y'],
    'MiddleClickAction': ['x', 'y'], 'DragAction': ['from_x', 'from_y', 'to_x', 'to_y', ('duration', float, 1.0)],
    'MoveToAction': ['x', 'y', ('duration', float, 0.0)],
    'ScrollAction': [('direction', str, 'up'), ('amount', int, 100)], 'TypeAction': ['text'], 'KeyAction': ['key'],
    'HotkeyAction': ['keys'], 'DoneAction': [], 'WaitAction': [('seconds', float, 1.0)],
}.items():
    setattr(cb, name, dataclasses.make_dataclass(name, fields))

def lifecycle(kind):
    def outer(given=None, *rest, split='train', **more):
        def mark(function):
            function._cua = (kind, given if isinstance(given, str) else split)
            return function
        return mark(given) if callable(given) else mark
    return outer
for kind in ['tasks_config', 'setup_task', 'solve_task', 'evaluate_task']:
    setattr(cb, kind, lifecycle(kind))
cb.interact = lambda *given, **more: None

class Session:
    async def launch_window(self, url=None, *, html=None, folder=None, title='Window', **more):
        if folder is not None:
            raise NotImplementedError('launch_window(folder=...) is not supported')
        return ask('launch_window', url=url, html=html, title=title)
    async def execute_javascript(self, pid, javascript):
        return ask('execute_javascript', pid=pid, script=javascript)
    async def get_element_rect(self, pid, selector, *, space='window', timeout=0.5):
        return ask('get_element_rect', pid=pid, selector=selector)
    async def click_element(self, pid, selector):
        return ask('click_element', pid=pid, selector=selector, button='click')
    async def right_click_element(self, pid, selector):
        return ask('click_element', pid=pid, selector=selector, button='right_click')
    async def execute_action(self, action):
        return ask('execute_action', name=type(action).__name__, given=dataclasses.asdict(action))
    async def screenshot(self):
        import base64
        return base64.b64decode(ask('screenshot'))
    def __getattr__(self, name):
        raise NotImplementedError('session.' + name + ' is not supported')
cb.DesktopSession = cb.MobileSession = Session
sys.modules['cua_bench'] = cb

path = sys.argv[1]
sys.path.insert(0, os.path.dirname(path))
spec = importlib.util.spec_from_file_location('task_main', path)
module = importlib.util.module_from_spec(spec)
try:
    spec.loader.exec_module(module)
    found = {one._cua: one for one in vars(module).values() if hasattr(one, '_cua')}
    splits = sorted({split for kind, split in found if kind == 'tasks_config'})
    variants = {split: found[('tasks_config', split)]() for split in splits}
    solvers = {one.__name__ for (kind, split), one in found.items() if kind == 'solve_task'}
    used = {'set up': set(), 'solved': set()}
    for part in ast.parse(open(path, encoding='utf-8').read()).body:
        who = 'solved' if getattr(part, 'name', None) in solvers else 'set up'
        sessions = {given.arg for inner in ast.walk(part) if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef))
                    for given in inner.args.args if given.arg == 'session' or 'Session' in ast.dump(given)}
        for node in ast.walk(part):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in sessions:
                used[who].add(node.attr)
            if isinstance(node, ast.Call) and getattr(node.func, 'attr', None) == 'launch_window':
                used[who].update('launch_window(folder=…)' for word in node.keywords if word.arg == 'folder')
    lacks = {who: sorted(name for name in names if name not in vars(Session)) for who, names in used.items()}
    tell({'done': [
        {'split': split, 'index': index, 'solves': ('solve_task', split) in found and not lacks['solved'],
         'judges': ('evaluate_task', split) in found, 'lacks': lacks['set up'], **dataclasses.asdict(task)}
        for split in splits for index, task in enumerate(variants[split])]})
except Exception as error:
    tell({'failed': type(error).__name__ + ': ' + str(error)})
    sys.exit(0)
session = Session()
for line in sys.stdin:
    order = json.loads(line)
    function = found.get((order['do'], order['split']))
    try:
        result = None if function is None else function(variants[order['split']][order['index']], session)
        if asyncio.iscoroutine(result):
            result = asyncio.run(result)
        tell({'done': result})
    except Exception as error:
        tell({'failed': type(error).__name__ + ': ' + str(error)})
`
