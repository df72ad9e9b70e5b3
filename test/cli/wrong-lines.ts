/**
 * Command lines that are wrong, as people write them: the code, the place that the message names, and what the fix says to do. Words in
 * braces are ids of the store that the test records.
 */
export interface WrongLine {
  readonly line: string
  readonly code: string
  readonly says: string
  readonly fix: string
}

const folder = 'give a folder, or a path that does not exist yet'
const storeFix = 'a folder that holds log.sqlite'

/** `line | code | place | fix`; the exit code follows from the code. */
const table = `
serve --host 10.1.2.3 --data new | USAGE | --host: 10.1.2.3 | 127.0.0.1
serve --host nosuch.invalid --data new | USAGE | --host: the name nosuch.invalid | give an IP address
serve --port 70000 --data new | USAGE | --port | from 0 to 65535
serve --port abc --data new | USAGE | --port | from 0 to 65535
serve --control-port 99999 --data new | USAGE | --control-port | from 0 to 65535
serve --config nosuch.ts --data new | CONFIG_NOT_FOUND | nosuch.ts | leave --config out
serve --data file.txt | USAGE | --data: {dir}/file.txt is a file | ${folder}
serve --data file.txt/x | USAGE | file.txt is a file | ${folder}
serve --data /proc/x | USAGE | --data: nothing can be made in /proc | another folder
serve --data /proc/x/y | USAGE | --data: nothing can be made in /proc | another folder
serve --data loop | USAGE | loop go in a circle | correct the link
serve --data {long} | USAGE | more than 255 bytes | give a shorter path
serve --data new --catalogue nonsense | CONFIG_INVALID | store.catalogue: must be a URL | Correct \`store.catalogue\`
PADDOCK_DATA=file.txt serve | CONFIG_INVALID | PADDOCK_DATA: {dir}/file.txt is a file | For PADDOCK_DATA: ${folder}
PADDOCK_DATA=/proc/x serve | CONFIG_INVALID | PADDOCK_DATA: nothing can be made in /proc | For PADDOCK_DATA: give a path in another folder
PADDOCK_CONFIG=nosuch.ts serve | CONFIG_NOT_FOUND | nosuch.ts | Check the path
ENGINE_URL=nonsense serve --data new | CONFIG_INVALID | engine.url | Correct \`engine.url\`
ENGINE_URL=http://127.0.0.1:9 serve --data new | ENGINE_UNREACHABLE | http://127.0.0.1:9 | Check ENGINE_URL
PADDOCK_TLS_CERT=nosuch.pem PADDOCK_TLS_KEY=nosuch.key serve --data new | CONFIG_INVALID | tls.cert {dir}/nosuch.pem | Correct the named place
quickstart --data file.txt | USAGE | file.txt is a file | ${folder}
quickstart --data /proc/x | USAGE | nothing can be made in /proc | another folder
quickstart extra | USAGE | extra | Write \`paddock quickstart\`
export --format jsonl --out /proc/x --data store | USAGE | --out: nothing can be made in /proc | another folder
export --format jsonl --out /proc/x/y --data store | USAGE | --out: nothing can be made in /proc | another folder
export --format jsonl --out file.txt/out --data store | USAGE | --out: {dir}/file.txt is a file | ${folder}
export --format jsonl --out=file.txt --data store | USAGE | --out: {dir}/file.txt is a file | ${folder}
export --format verl --out /dev/null --data store | USAGE | --out: /dev/null is a file | ${folder}
export --format jsonl --out {long} --data store | USAGE | --out: | give a shorter path
export --format jsonl --out loop/x --data store | USAGE | --out: | correct the link
export --format jsonl --out full --data store | EXPORT_REFUSED | full is not empty | Give another --out
export --format jsonl --out full --replace --data store | EXPORT_REFUSED | full is not empty | it has no manifest.json
export --format jsonl --out exported --data store | EXPORT_REFUSED | exported is not empty | Add \`--replace\`
export --out o --data store | USAGE | --format | areal, atif, dpo, jsonl
export --format jsonl --data store | USAGE | --out | Add \`--out <dir>\`
export --format jsnol --out o --data store | EXPORT_FORMAT_UNKNOWN | jsnol | jsonl
export --format --out o --data store | USAGE | --out <dir> is missing | Add \`--out <dir>\`
export --format jsonl --out o --run {rollout} --data store | USAGE | {rollout} is a rollout, not a run | {run}
export --format jsonl --out o --rollout {session} --data store | USAGE | {session} is a session, not a rollout | {rollout}
export --format jsonl --out o --option sap=; --data store | USAGE | sap | Its options: messages (boolean)
export --format jsonl --out o --option sap --data store | USAGE | --option <key=value> | Give key=value
export --format jsonl --out o --allow everything --data store | USAGE | --allow | mixed-verifiers
export --format jsonl --out o --weight-rule half --data store | USAGE | --weight-rule | first-owner
export --format jsonl --out o --min-reward high --data store | USAGE | --min-reward | Give a number
backup --into file.txt --data store | USAGE | --into: {dir}/file.txt is a file | ${folder}
backup --into file.txt/x --data store | USAGE | --into: {dir}/file.txt is a file | ${folder}
backup --into full --data store | USAGE | full is not empty | a folder that is not there yet
backup --into {long} --data store | USAGE | --into: | give a shorter path
backup --into /proc/x/y --data store | USAGE | --into: nothing can be made in /proc | another folder
backup --into b --data nosuch | NOT_FOUND | nosuch | Give a data directory or a backup that is whole
restore nosuch.tar --into restored | NOT_FOUND | nosuch.tar | that \`paddock backup\` wrote
restore empty --into restored | NOT_FOUND | empty | a backup that is whole
restore nosuch.tar | USAGE | --into | Add \`--into <directory>\`
fsck /nowhere | NOT_FOUND | /nowhere | ${storeFix}
fsck file.txt | NOT_FOUND | file.txt | ${storeFix}
fsck --data empty | NOT_FOUND | {dir}/empty | ${storeFix}
salvage /nowhere --into new | NOT_FOUND | /nowhere | ${storeFix}
salvage store --into full | USAGE | full is not empty | a new directory
salvage store --into file.txt | USAGE | --into: {dir}/file.txt is a file | ${folder}
list --data /etc | NOT_FOUND | /etc | ${storeFix}
list --data nosuch | NOT_FOUND | nosuch | another directory with --data
list --data file.txt | NOT_FOUND | file.txt is a file | with --data
list --data loop | USAGE | --data: the symbolic links of {dir}/loop | correct the link
list rollout --data store | USAGE | "rollout" | Write \`rollouts\`
list run --data store | USAGE | "run" | Write \`runs\`
list --limit abc --data store | USAGE | --limit | a whole number of at least 1
list --limt 3 --data store | USAGE | --limt | Write \`--limit\`
list tasks --pass-rate x --data store | USAGE | --pass-rate | 0.2..0.8
list rollouts --pass-rate 0..1 --data store | USAGE | --pass-rate | leave out --pass-rate
show 00000000 --data store | NOT_FOUND | 00000000 | \`paddock list\` shows the ids
show zz --data store | NOT_FOUND | "zz" | at least four characters
show --data store | USAGE | <id> | Write \`paddock show <id>\`
show {rollout} --call 99 --data store | USAGE | --call | It takes --tokens
verdict {session} --source me --reward 1 --data store | USAGE | {session} is a session, not a rollout | {rollout}
verdict {group} --source me --reward 1 --data store | USAGE | {group} is a group, not a rollout | paddock list rollouts
verdict {run} --source me --reward 1 --data store | USAGE | {run} is a run, not a rollout | paddock list rollouts --run {run}
verdict {rollout} --reward 1 --data store | USAGE | --source | Add \`--source <name>\`
verdict {rollout} --source me --reward x --data store | USAGE | --reward | Give a number
verdict {rollout} --source me --reward 1 --none because --data store | USAGE | --reward and --none | Leave one of them out
rescore --data store | USAGE | --all | \`paddock list\` shows the ids
fork {session} --at 0 --data store | USAGE | {session} is a session, not a rollout | {rollout}
fork {rollout} --data store | USAGE | --at | Add \`--at <call>\`
fork {rollout} --at 0 --way x --data store | USAGE | --way x | replay, state or graft
rewrite --with nosuch.json --data store | USAGE | --with: {dir}/nosuch.json does not exist | correct the path after {dir}
rewrite --with empty --data store | USAGE | --with: {dir}/empty is a folder | give a file
run --data new | USAGE | tasks, --chain or --resume | paddock run <folder of tasks>
run nosuch --data new | TASK_INVALID | nosuch: does not exist | task.toml and instruction.md
run file.txt --data new | TASK_INVALID | file.txt: is a file | task.toml and instruction.md
run empty --data new | TASK_INVALID | empty: holds no task | task.toml and instruction.md
run empty --n 0 --data new | USAGE | --n | a whole number of at least 1
run empty --harnes x --data new | USAGE | --harnes | Write \`--harness\`
run empty --harness nosuch --data new | HARNESS_UNKNOWN | nosuch | claude-code
run empty --env nosuch --data new | ENVIRONMENT_UNKNOWN | nosuch | terminal
run empty --inject nosuch.json --data new | USAGE | --inject: {dir}/nosuch.json | correct the path
run --chain nosuch.toml --data new | USAGE | --chain: {dir}/nosuch.toml | correct the path
run --chain empty --data new | USAGE | --chain: {dir}/empty is a folder | give a file
run --resume {group} --data store | USAGE | {group} is a group, not a run | {run}
run --resume {rollout} --data store | USAGE | {rollout} is a rollout, not a run | {run}
run --resume {run} --n 8 --data store | USAGE | --n | Leave out --n
validate nosuch | TASK_INVALID | nosuch: does not exist | task.toml and instruction.md
generate terminal | USAGE | --out | Add \`--out <file>\`
generate terminal --out o | USAGE | --out | ends in .jsonl
import nosuch.jsonl --format atif --data new | USAGE | nosuch.jsonl does not exist | Correct the path
import file.txt --format nosuch --data new | USAGE | --format | atif, chat, sharegpt, harbor, paddock
import file.txt --data new | USAGE | --format | atif, chat, sharegpt, harbor, paddock
import full --format chat --data new | IMPORT_INVALID | full: it is a folder | another \`--format\`
import file.txt --format paddock --data new | NOT_FOUND | file.txt | ${storeFix}
search --data store | USAGE | <words> | Write \`paddock search <words>\`
search foo --run {session} --data store | USAGE | {session} is a session, not a run | {run}
token create --name x --data store | USAGE | --role | admin, trainer, annotate, view, node
token create --role king --name x --data store | USAGE | --role | admin, trainer, annotate, view, node
token revoke nosuch --data store | NOT_FOUND | nosuch | paddock token list
node | USAGE | --join | Add \`--join <url>\`
node --join nonsense | USAGE | --join nonsense | https://<host>:<port>
node --join http://127.0.0.1:9 --token-file nosuch | USAGE | --token-file: {dir}/nosuch | correct the path
node --join http://127.0.0.1:9 --token-file empty | USAGE | --token-file: {dir}/empty is a folder | give a file
env create mine | USAGE | "create" | Write \`new\`
env | USAGE | <action> | new
env new Bad_Name | USAGE | Bad_Name | lower case letters
env new mine --into file.txt | USAGE | --into: {dir}/file.txt is a file | ${folder}
env new mine --into /proc/x | USAGE | --into: nothing can be made in /proc | another folder
engine | USAGE | paddock engine | status, pause, resume, weights
engine frob --data store | USAGE | frob | status, pause, resume, weights
engine pause --data nosuch | NOT_FOUND | nosuch | theirs with --data
box exec nosuch | USAGE | <command> | paddock box exec <box> <command...>
completion powershell | USAGE | powershell | bash, zsh, fish
completion | USAGE | <shell> | bash, zsh, fish
fetch nosuch --registry /nowhere.json | NOT_FOUND | /nowhere.json | Name a file
retrieve nosuch | TASK_INVALID | nosuch/search.toml | search.toml and questions.jsonl
lst | USAGE | lst | Write \`list\`
ls | USAGE | ls | Write \`list\`
frobnicate | USAGE | frobnicate | quickstart, serve
`

export const wrongLines: readonly WrongLine[] = table
  .trim()
  .split('\n')
  .map((row) => {
    const [line = '', code = '', says = '', fix = ''] = row.split(' | ')
    return { line, code, says, fix }
  })
