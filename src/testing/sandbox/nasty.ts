/**
 * Commands that try to outlive their end, each in a way of its own. `leaves` says that the command itself ends at once
 * and only its offspring stays; the others run until their deadline.
 */
export interface NastyCommand {
  readonly name: string
  readonly command: string
  readonly leaves: boolean
}

const left = (name: string, command: string): NastyCommand => ({ name, command, leaves: true })
const stays = (name: string, command: string): NastyCommand => ({ name, command, leaves: false })

export const nastyCommands: readonly NastyCommand[] = [
  left('background job', 'sleep 1000 & echo x'),
  left('nohup', 'nohup sleep 1000 >/dev/null 2>&1 &'),
  left('new session', 'setsid sleep 1000 &'),
  left('new session that forks', 'setsid -f sleep 1000'),
  left('double fork', '( ( sleep 1000 & ) & )'),
  left(
    'double fork in a new session',
    "python3 -c 'import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0:\n  time.sleep(1000)'",
  ),
  left('disowned', 'sleep 1000 & disown -a'),
  left('holds the output pipe', '(while :; do echo x; sleep 0.01; done) &'),
  left('ignores TERM', '(trap "" TERM INT HUP; sleep 1000) & sleep 0.02'),
  left('re-arms itself', "(trap '$0 &' TERM; while :; do sleep 0.1; done) & sleep 0.02"),
  left('many children', 'for i in $(seq 60); do sleep 1000 & done'),
  left('deep chain', 'f() { if [ $1 -gt 0 ]; then ( f $(($1-1)) & sleep 1000 ) & fi; }; f 12; sleep 0.05'),
  left('stopped child', '(kill -STOP $BASHPID; sleep 1000) & sleep 0.05'),
  left('stops its keeper', '(sleep 0.05; kill -STOP $(ps -o ppid= -p $$)) & sleep 1000 & sleep 0.15; echo done'),
  left('hidden name', "exec -a '(x) S 1 1' bash -c 'sleep 1000 & sleep 0.02'"),
  left(
    'subreaper of its own',
    "python3 -c 'import ctypes,os,time\nctypes.CDLL(None).prctl(36,1,0,0,0)\nif os.fork()==0:\n os.setsid()\n if os.fork()==0: time.sleep(1000)\n os._exit(0)'",
  ),
  left('orphan that respawns', "(setsid bash -c 'while :; do sleep 0.05 & wait; done' &)"),
  left('kills its keeper', 'setsid sleep 1000 & kill -9 $PPID || exit 1; sleep 1000'),
  stays('ignores TERM itself', 'trap "" TERM; while :; do sleep 0.05; done'),
  stays(
    'ignores TERM in the whole group',
    'trap "" TERM; sleep 1000 & sleep 1000 & wait; while :; do sleep 0.05; done',
  ),
  stays('starts a session on TERM', "trap 'setsid sleep 1000 &' TERM; while :; do sleep 0.02; done"),
  stays('forks for ever', 'f() { sleep 0.01 & f & sleep 0.05; }; while :; do f; done 2>/dev/null'),
  stays('a classic bomb', ':(){ :|:& };: 2>/dev/null; sleep 1000'),
  stays('busy loops', 'for i in 1 2 3 4; do (while :; do :; done) & done; wait'),
  stays(
    'vfork by python',
    'python3 -c \'import subprocess,signal,time\nsignal.signal(15,signal.SIG_IGN)\nsubprocess.Popen(["setsid","sleep","1000"])\ntime.sleep(1000)\'',
  ),
  stays('stops itself', 'kill -STOP $$'),
]
