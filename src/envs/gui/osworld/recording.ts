import { type Answer, json } from './http.ts'
import type { Machine } from './machine.ts'

const recording = '/tmp/osworld_recording.mp4'

/** Needs `ffmpeg` in the image (documented, not run: ours has none). */
export async function startRecording(machine: Machine): Promise<Answer> {
  const { returncode } = await machine.execute('command -v ffmpeg', { shell: true })
  if (returncode !== 0) {
    return json({ status: 'error', message: 'ffmpeg is required for recording but was not found in PATH.' }, 500)
  }
  const { width, height } = machine.screen
  await machine.launch(
    `ffmpeg -y -f x11grab -draw_mouse 1 -s ${width}x${height} -i "$DISPLAY" -c:v libx264 -r 30 ${recording} & echo $! > ${recording}.pid`,
    true,
  )
  return json({ status: 'success', message: 'Started recording successfully.' })
}

/** Ends the recording and gives it. */
export async function endRecording(machine: Machine): Promise<Answer> {
  const { returncode } = await machine.execute(
    `pid=$(cat ${recording}.pid) && kill -INT "$pid" && for n in $(seq 150); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done`,
    { shell: true },
  )
  const data = returncode === 0 ? await machine.file(recording) : null
  if (data === null) return json({ status: 'error', message: 'No recording in progress to stop.' }, 400)
  return { status: 200, type: 'video/mp4', body: data }
}
