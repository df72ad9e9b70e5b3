/**
 * The error catalogue. Every error that Paddock raises on purpose is a `PaddockError` with a code from
 * {@link catalogue}; `docs/reference/errors.md` is held against this table by a test.
 *
 * Four families never mix: `request` (what the caller sent), `engine` (the inference backend), `infra` (our own
 * boxes, store, daemon), `agent` (the harness or its command). An `infra` or `engine` error is never a reward.
 */
export type ErrorFamily = 'request' | 'engine' | 'infra' | 'agent'

interface CatalogueEntry {
  readonly family: ErrorFamily
  /** Default HTTP status where the error answers a request. */
  readonly status: number
  /** One line: what it means. */
  readonly means: string
  /** What the reader does about it. */
  readonly fix: string
}

/** One line each, alphabetical. Add a code here and in docs/reference/errors.md. */
export const catalogue = {
  AUTH_KEY_MISMATCH: entry(
    'request',
    403,
    'The key opens another session than the one in the URL.',
    'Use the key that was issued with this session URL.',
  ),
  AUTH_KEY_UNKNOWN: entry(
    'request',
    401,
    'The key is missing or opens no session.',
    'Send the session key as bearer, x-api-key or x-goog-api-key.',
  ),
  BODY_ENCODING_UNKNOWN: entry(
    'request',
    415,
    'The request body has a content-encoding that is not known.',
    'Send the body as it is, or as gzip, deflate, br or zstd.',
  ),
  BODY_INVALID_JSON: entry('request', 400, 'The request body is not valid JSON.', 'Send one JSON object, UTF-8.'),
  BODY_INVALID_SHAPE: entry(
    'request',
    400,
    'The request body does not have the shape of this route.',
    'Correct the named field.',
  ),
  BODY_TOO_LARGE: entry(
    'request',
    413,
    'The request body exceeds the limit.',
    'Send a smaller body or raise proxy.maxBodyBytes.',
  ),
  BOX_COMMAND_REFUSED: entry(
    'infra',
    500,
    'The box could not start the command.',
    'See the cause; the program may be missing in the image.',
  ),
  BOX_DEAD: entry(
    'infra',
    503,
    'The box died before the operation ended.',
    'The rollout ends as infra and can be tried again.',
  ),
  BOX_FILES_UNFIT: entry(
    'agent',
    422,
    'What an agent left in its box cannot be listed, packed or kept: paths too long, too many files, too much of them.',
    'Nothing of ours is broken; the attempt counts as the agent left it.',
  ),
  BOX_START_FAILED: entry(
    'infra',
    503,
    'A box or one of its parts could not be made or reached.',
    'See what the daemon said in the message; run `paddock doctor`.',
  ),
  BUDGET_EXHAUSTED: entry(
    'request',
    429,
    'The session has used up its budget.',
    'Open a session with a larger budget.',
  ),
  BROWSER_GONE: entry(
    'infra',
    503,
    'The browser or desktop of a gui task ended, crashed or does not answer.',
    'The attempt has no verdict; run it again, with more memory for the box if it repeats.',
  ),
  BUNDLE_FAILED: entry(
    'infra',
    500,
    'A harness bundle could not be installed.',
    'See the cause; check that the npm registry is reachable.',
  ),
  CATALOGUE_OTHER: entry(
    'infra',
    409,
    'The data directory belongs to another catalogue than the one that is configured.',
    'Give the catalogue that it was begun with, or choose another --data directory.',
  ),
  CATALOGUE_UNAVAILABLE: entry(
    'infra',
    503,
    'The PostgreSQL server of the catalogue does not answer or ended the connection; whether the last call took place is unknown.',
    'Do the same again. Check that the server runs, the URL of `store.catalogue`, and the limit of connections.',
  ),
  CLAIM_OVER: entry(
    'request',
    409,
    'The claim is over: it was given back, disposed of, or its lease ran out and somebody else has the group.',
    'Claim again; renew leases in time.',
  ),
  CONFIG_INVALID: entry('request', 400, 'The configuration is not valid.', 'Correct the named place.'),
  CONFIG_NOT_FOUND: entry(
    'request',
    404,
    'The configuration file does not exist.',
    'Check the path, or leave --config out.',
  ),
  CONFIG_UNTRUSTED: entry(
    'request',
    403,
    'The configuration or plugin is a file that somebody else may have written.',
    'Read it; then name it with --config, or take write permission away from others (chmod go-w). --no-config goes on without it.',
  ),
  CONTEXT_OVERFLOW: entry(
    'engine',
    400,
    'The prompt and max_tokens exceed the context window of the model.',
    'Shorten the prompt or lower max_tokens.',
  ),
  CONTROL_TOKEN: entry(
    'request',
    401,
    'The control token is missing, wrong, over or revoked.',
    'Send `Authorization: Bearer <token>`: one that `paddock token create` told, or the one in the file control-token of the data directory.',
  ),
  ENGINE_DERENDER_FAILED: entry(
    'engine',
    502,
    'The engine sampled an answer and could not turn its ids into a message.',
    'See the log of the engine; the sampled ids are recorded, and never trained.',
  ),
  ENGINE_DIED: entry(
    'engine',
    502,
    'The engine closed the connection before the answer was complete.',
    'Check the engine; the call is recorded as failed and may be retried.',
  ),
  ENGINE_DIFFERS: entry(
    'request',
    409,
    'A replica is another engine than the others of the set.',
    'Start it as the others are: kind, version, model, tokenizer, template and logprobs have to be the same.',
  ),
  ENGINE_ERROR: entry('engine', 502, 'The engine answered with an error.', 'See the engine message in the error.'),
  ENGINE_INCAPABLE: entry(
    'engine',
    501,
    'The engine cannot do what the session policy demands.',
    'Start the engine with the named flags or relax the policy.',
  ),
  ENGINE_NONE: entry(
    'request',
    409,
    'Paddock was started without an engine, and none has been named yet.',
    'Name one: PUT /rl/v1/runs/{run}/engines.',
  ),
  ENGINE_PAUSED: entry(
    'request',
    409,
    'Generation is paused, or a weight update is going on.',
    'Wait for it, or end the pause with POST /engine/resume.',
  ),
  ENGINE_TIMEOUT: entry(
    'engine',
    504,
    'The engine did not answer in time.',
    'Check the engine or raise engine.timeoutMs.',
  ),
  ENGINE_UNREACHABLE: entry(
    'engine',
    502,
    'The engine cannot be reached.',
    'Check ENGINE_URL and that the engine is running.',
  ),
  ENGINE_UNTRUSTED: entry(
    'engine',
    502,
    'The engine keeps telling ids, logprobs or counts that cannot be true.',
    'See the findings of the calls and what stands between Paddock and the engine; to record text alone, use the engine kind openai.',
  ),
  ENVIRONMENT_INVALID: entry(
    'request',
    400,
    'An environment plugin does not fulfil the contract.',
    'Correct the named part of the plugin.',
  ),
  EMBEDDINGS_FAILED: entry(
    'infra',
    502,
    'The server of embeddings that a search task names did not give vectors.',
    'Check search.dense in search.toml: url up to /v1, model, and the variable that key_env names.',
  ),
  ENVIRONMENT_SERVER_FAILED: entry(
    'infra',
    502,
    "The server of somebody else's environment did not start, ended, hung, failed or answered what its protocol does not know.",
    'See what it printed in the message; the rollout has no number and can be tried again.',
  ),
  ENVIRONMENT_SETUP_FAILED: entry(
    'infra',
    500,
    'A step that sets a task up failed, so that the attempt would begin in another state than its author meant.',
    'Give the task an image that has what the step needs, or correct the step.',
  ),
  ENVIRONMENT_TOOL_FAILED: entry(
    'infra',
    500,
    'A tool of the environment failed by itself, so that nothing can be said of the agent.',
    'Correct the tool: what a tool throws is its own fault, what the agent did wrong is status `error`.',
  ),
  ENVIRONMENT_UNKNOWN: entry(
    'request',
    404,
    'No environment of that name is registered.',
    'Use one of the listed names, or register the plugin in paddock.config.ts.',
  ),
  EVAL_INVALID: entry(
    'request',
    400,
    'There is nothing to evaluate as it was asked for.',
    'Name tasks that are there, each once, all of the split that is asked for.',
  ),
  EVAL_RUNNING: entry(
    'request',
    409,
    'Evaluations are under way, and they are of the weights that are live.',
    'Ask again; or cancel the named ones: POST /rl/v1/runs/{run}/evals/{eval}/cancel.',
  ),
  EVAL_VERSION: entry(
    'request',
    409,
    'The weights that an evaluation asks for are not live.',
    'Ask for the version that is live, or leave `version` out.',
  ),
  EXPORTER_INVALID: entry(
    'request',
    400,
    'An exporter plugin does not fulfil the contract.',
    'Correct the named part of the plugin.',
  ),
  EXPORT_FORMAT_UNKNOWN: entry(
    'request',
    400,
    'No exporter of that name is registered.',
    'Use one of the listed formats.',
  ),
  EXPORT_REFUSED: entry(
    'request',
    409,
    'The selection cannot be exported truthfully, or does not hold what the trainer of the format needs.',
    'Correct the selection or pass the named option.',
  ),
  IMPORT_INVALID: entry(
    'request',
    400,
    'A file of trajectories is not of the form that it was said to have.',
    'Correct the named place, or name another format.',
  ),
  FENCED: entry(
    'request',
    409,
    'Another process speaks for the run now.',
    'Stop this one; or attach again, which fences the other.',
  ),
  GATE: entry(
    'request',
    409,
    'These weights would make groups under way older than the run allows.',
    'Wait until the named groups are disposed of, or cancel them by name.',
  ),
  GROUP_INSIDE: entry(
    'request',
    409,
    'Paddock itself runs the rollouts of this group, so nobody else opens or ends them.',
    'Open a group of your own with `POST /groups`.',
  ),
  FORK_REFUSED: entry(
    'request',
    409,
    'The rollout cannot be forked there.',
    'Fork a rollout that Paddock ran, at a call of class main, with a harness whose preset says that it can be forked that way.',
  ),
  IMAGE_IN_USE: entry(
    'request',
    409,
    'What is kept of a box cannot be removed: a box stands on it.',
    'Wait until the rollouts that were forked from it have ended, then remove it again.',
  ),
  SCORE_REFUSED: entry(
    'engine',
    409,
    'Given ids are not scored: the weights are other ones than asked for, or change on the way.',
    'Ask again under the version that there is now, or leave `if_version` out.',
  ),
  GROUP_INVALID: entry(
    'request',
    400,
    'The group asks for what its members could never come to.',
    'Correct n, over, topUp, minUsable, stopWhen or carry.',
  ),
  HANDIN_DAMAGED: entry(
    'request',
    400,
    'What was handed in is cut off, changed on its way or no finished rollout; nothing of it was stored.',
    'Hand the rollout in again from the store in which it ran; check that store with `paddock fsck`.',
  ),
  HANDIN_OTHER: entry(
    'request',
    409,
    'A rollout of this id is here with other content.',
    'What is here stays. Find out which of the two stores ran the rollout as its job says; run the other as a new one.',
  ),
  HARNESS_FAILED: entry(
    'agent',
    500,
    'The harness ended with a failure of its own.',
    'See its output in the rollout events.',
  ),
  HARNESS_INVALID: entry(
    'request',
    400,
    'A harness preset does not fulfil the contract.',
    'Correct the named part of the preset.',
  ),
  HARNESS_TOOLS_UNLISTED: entry(
    'infra',
    500,
    'A harness that takes its tools over MCP never asked for them.',
    'Its own output in `paddock show` says why its MCP connection failed; the attempt is repeated.',
  ),
  HARNESS_UNFIT: entry(
    'request',
    400,
    'A harness cannot run in the image of a task: something that it needs there is missing.',
    'Use an image that has it, or a harness that needs nothing but the kernel.',
  ),
  HARNESS_UNKNOWN: entry(
    'request',
    404,
    'No harness preset of that name is registered.',
    'Use one of the listed presets.',
  ),
  IMAGE_BUILD_FAILED: entry('infra', 500, 'A sandbox image could not be built.', 'See the build log in the cause.'),
  IMAGE_DOCKERFILE_UNSUPPORTED: entry(
    'request',
    501,
    'A Dockerfile uses what the builder of this daemon does not know.',
    'Write it without what the message names, or use a newer daemon.',
  ),
  IMAGE_MISSING: entry(
    'infra',
    503,
    'An image is not on this machine and could not be pulled.',
    'Load it with `docker load`, or make its registry reachable.',
  ),
  INTERNAL: entry('infra', 500, 'A fault in Paddock itself.', 'Run it again with --verbose and report the stack.'),
  NODE_SESSION_GONE: entry(
    'request',
    409,
    'The node session is over, draining or unknown, so it can claim no jobs.',
    'Stop the work of that session and join with a new one.',
  ),
  MODEL_UNKNOWN: entry('request', 404, 'The engine serves no model of this name.', 'Name one of its models.'),
  NOT_FOUND: entry('request', 404, 'There is no such object.', 'Check the id; `paddock list` shows what exists.'),
  ORIGIN_REFUSED: entry(
    'request',
    403,
    'A web page of another origin, or a request under a foreign host name, asked open mode or the viewer for an answer.',
    'Ask 127.0.0.1 or localhost, not from a web page. Of open mode: use the key that `paddock serve` prints. Of the viewer: open its link.',
  ),
  OWNER_STOPPING: entry('infra', 503, 'The owner of the data directory is stopping.', 'Ask again when it has ended.'),
  PATH_UNSAFE: entry(
    'agent',
    400,
    'An archive or path tries to leave its place.',
    'Links out, absolute paths, devices and .. are refused.',
  ),
  PAUSE_TIMED_OUT: entry(
    'engine',
    504,
    'Running generations did not end in time for a pause.',
    'Give it more time (`timeoutMs`), or use the mode keep or abort-resubmit.',
  ),
  POLICY_OWNED: entry('request', 409, 'Another run announces the weights of this engine.', 'Close that run first.'),
  PORT_IN_USE: entry(
    'request',
    409,
    'The port is taken by another process.',
    'Choose another port (0 takes a free one), or stop the other process.',
  ),
  PROBE_BUDGET: entry(
    'request',
    429,
    'Probes of the run have sampled, or may be about to sample, as many tokens as they may.',
    'Ask for fewer or shorter continuations, or open the run with a larger `probe_tokens`.',
  ),
  PROBE_REFUSED: entry(
    'request',
    409,
    'There is no exact token prefix to go on from at that call.',
    'Probe a call of a rollout whose prompt and answer have recorded ids, and no images or sound.',
  ),
  PROXY_DRAINING: entry(
    'infra',
    503,
    'The proxy takes no new calls because it is shutting down.',
    'Try again after the restart.',
  ),
  PROXY_OVERLOADED: entry(
    'infra',
    503,
    'More calls are waiting than the proxy admits.',
    'Lower the concurrency or raise proxy.maxInFlight.',
  ),
  QUEUE_UNAVAILABLE: entry(
    'infra',
    503,
    'The PostgreSQL server of the job queue does not answer or ended the connection; whether the last call took place is unknown.',
    'Do the same call again: each may be repeated. Check that the server runs, and its limit of connections.',
  ),
  RESPONSE_UNKNOWN: entry(
    'request',
    404,
    'The session holds no stored response of this id.',
    'Only responses of this session that were asked with `store` (the default) and are complete can be read again.',
  ),
  ROLE_REFUSED: entry(
    'request',
    403,
    'The token has a role that may not do this.',
    'Use a token of one of the roles that the message names: `paddock token create --role <role> --name <name>`.',
  ),
  ROUND_OPEN: entry(
    'request',
    409,
    'A round of the group goes on, and one must settle before the next opens.',
    'Wait for it to settle, or cancel the group.',
  ),
  ROUND_SETTLED: entry(
    'request',
    409,
    'The round of the group has settled, so it takes no further member.',
    'Open another round of the group.',
  ),
  ROUTE_DENIED: entry(
    'request',
    404,
    'This route is not served on a session.',
    'See docs/reference/routes.md for the routes of a session.',
  ),
  RUBRIC_INVALID: entry(
    'request',
    400,
    'A rubric file of a judge does not have its shape.',
    'Correct the named place of the file.',
  ),
  RUN_CLOSED: entry('request', 409, 'The run was closed: it takes no more groups.', 'Open another run.'),
  RUN_FULL: entry(
    'request',
    429,
    'The run has as many groups open or unclaimed as it may have.',
    'Claim and dispose of settled groups, then ask again.',
  ),
  RUN_IS_EVAL: entry(
    'request',
    409,
    'The run is an evaluation: nothing of it is trained, and it takes nothing more.',
    'Ask for this of the run that trains.',
  ),
  RECORDED_ELSEWHERE: entry(
    'request',
    409,
    'The run is of another data directory on the same catalogue, which has its segments.',
    'Ask the Paddock of that data directory, or name runs of this one.',
  ),
  GRAFT_LOST: entry(
    'infra',
    400,
    'A request of a forked rollout, whose harness resumed its session, does not say any more where its past ends.',
    'Its harness compacted or rewrote its conversation behind the fork. `--on-divergence branch` goes on with what it says.',
  ),
  BOX_DIVERGED: entry(
    'infra',
    500,
    'The files of a replayed box are not those of its parent at the fork.',
    'The event names them: a tool did something else the second time. `--on-divergence branch` goes on with them; fork by state or graft copies files.',
  ),
  REPLAY_DIVERGED: entry(
    'infra',
    400,
    'A forked rollout asked something else than its parent had asked at that place.',
    'See the difference; tools whose results change from run to run cannot be replayed. `--on-divergence branch` goes on from there.',
  ),
  RUN_REFUSED: entry(
    'request',
    409,
    'The run cannot be gone on with.',
    'Begin a new run; what was recorded is kept, and `paddock rescore` verifies what is unverified.',
  ),
  SANDBOX_CAPABILITY: entry(
    'request',
    501,
    'The sandbox provider cannot do what the task needs.',
    'Remove the need or use another provider.',
  ),
  SANDBOX_DISK_FULL: entry(
    'infra',
    507,
    "The daemon's disk has no room for a copy of a box.",
    'Free space (`paddock gc`), or give tasks a smaller storage_mb.',
  ),
  SANDBOX_TIMEOUT: entry('infra', 504, 'The sandbox daemon did not answer in time.', 'Run `paddock doctor`.'),
  SANDBOX_UNAVAILABLE: entry(
    'infra',
    503,
    'The Docker daemon cannot be reached.',
    'Start it (`dockerd` or `systemctl start docker`) and run `paddock doctor`.',
  ),
  SELECTOR_INVALID: entry(
    'request',
    400,
    'A selector plugin does not fulfil the contract.',
    'Correct the named part of the plugin.',
  ),
  SELECTOR_UNKNOWN: entry(
    'request',
    400,
    'There is no selector of that name.',
    'Use one of the listed selectors, or list the plugin under `selectors`.',
  ),
  SESSION_CLOSED: entry('request', 409, 'The session is closed.', 'Open a new session.'),
  SESSION_UNKNOWN: entry(
    'request',
    404,
    'There is no such session.',
    'Check the session id in the URL; `paddock serve` prints it.',
  ),
  STAGE_TIMEOUT: entry(
    'infra',
    504,
    'A stage of a rollout took longer than its budget.',
    'Raise the budget of this stage under run.budgets.',
  ),
  SHELVE_REFUSED: entry(
    'request',
    409,
    'The rollout has no agent at work in this Paddock that could be put aside or gone on with.',
    'Shelve a rollout that Paddock does, between the start and the end of its agent.',
  ),
  STORE_CLOSED: entry('infra', 503, 'The store is closed.', 'Open it again.'),
  STORE_CONFLICT: entry(
    'infra',
    409,
    'The fact contradicts one that is already stored.',
    'Nothing stored is ever changed; append a correction instead.',
  ),
  STORE_CORRUPT: entry(
    'infra',
    500,
    'The store does not hold what its digests say.',
    'Run `paddock fsck` and restore the named file.',
  ),
  STORE_FAILED: entry(
    'infra',
    500,
    'The store could not do what was asked.',
    'See the cause; check disk space and permissions.',
  ),
  STORE_FILESYSTEM: entry(
    'infra',
    500,
    'The data directory lies on a network file system.',
    'Choose a --data directory on a local disk: SQLite keeps its write-ahead log in shared memory.',
  ),
  STORE_LOCKED: entry(
    'infra',
    409,
    'Another process owns the data directory.',
    'Use its control API, or stop it, or choose another --data directory.',
  ),
  STORE_SCHEMA: entry('infra', 500, 'The store was written by a newer Paddock.', 'Update Paddock.'),
  STREAM_UPGRADE_REFUSED: entry(
    'request',
    426,
    'WebSocket is not served on a session route.',
    'Use plain HTTP with server-sent events.',
  ),
  TASK_HELD_OUT: entry(
    'request',
    409,
    'A task that is held out for evaluation was asked for in training.',
    'Train on tasks of another split.',
  ),
  TASK_INVALID: entry('request', 400, 'A task does not have the shape of its format.', 'Correct the named place.'),
  TASK_NOT_READY: entry(
    'infra',
    503,
    "The task's box did not pass its health check.",
    'See the set-up commands in the rollout events; correct the health check or raise its limits.',
  ),
  TASK_UNSUPPORTED: entry(
    'request',
    501,
    'The task needs a feature that is not supported.',
    'Remove the feature or use another task.',
  ),
  TASK_UNTRUSTED: entry(
    'request',
    403,
    'The task brings a program that would run on this machine, outside of any box.',
    'Read that program; then say --trust-tasks, or set tasks.trust in the configuration.',
  ),
  TOKEN_REFUSED: entry(
    'request',
    400,
    'No such token can be made: its name was given before or is none, or no route takes its role.',
    'Take another name, and a role that `paddock token create --help` lists.',
  ),
  USAGE: entry('request', 400, 'The command line is not valid.', 'Run the command with --help.'),
  VERDICT_REFUSED: entry(
    'request',
    409,
    'The rollout cannot be given this verdict.',
    'Give a finite reward, or a status without one and its reason, once the rollout has ended.',
  ),
  VERIFIER_FAILED: entry(
    'infra',
    500,
    'The verifier did not give a verdict.',
    'See its output in the rollout events; the reward is null.',
  ),
  WEIGHTS_REFUSED: entry(
    'engine',
    502,
    'A replica of the engine did not take the new weights.',
    'See what it said; repeat the update, or take the replica out of `engine.url`.',
  ),
} as const satisfies Record<string, CatalogueEntry>

/** A code of the catalogue. */
export type ErrorCode = keyof typeof catalogue

function entry(family: ErrorFamily, status: number, means: string, fix: string): CatalogueEntry {
  return { family, status, means, fix }
}
