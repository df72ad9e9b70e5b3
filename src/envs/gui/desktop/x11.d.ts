/** What is used of the package `x11` 4.2, which ships no types (lib/xcore.js, lib/corereqs.js, lib/ext). */
declare module 'x11' {
  import type { Duplex } from 'node:stream'

  export interface XTest {
    readonly KeyPress: 2
    readonly KeyRelease: 3
    readonly ButtonPress: 4
    readonly ButtonRelease: 5
    readonly MotionNotify: 6
    FakeInput(type: number, detail: number, timeMs: number, root: number, x: number, y: number): void
  }
  export interface Damage {
    readonly ReportLevel: { readonly RawRectangles: 0 }
    QueryVersion(major: number, minor: number, done: (error: Error | null) => void): void
    Create(damage: number, drawable: number, level: number): void
  }
  export interface XEvent {
    readonly name?: string
    /** Of DamageNotify. */
    readonly area?: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  }
  export interface XClient {
    /** Numbers of atoms by name, as far as they are known; where one is, the server is not asked. */
    atoms: Readonly<Record<string, number>>
    require(name: 'xtest', done: (error: Error | null, extension: XTest) => void): void
    require(name: 'damage', done: (error: Error | null, extension: Damage) => void): void
    AllocID(): number
    GetKeyboardMapping(
      first: number,
      count: number,
      done: (error: Error | null, rows: readonly (readonly number[])[]) => void,
    ): void
    ChangeKeyboardMapping(first: number, each: number, keysyms: readonly number[]): void
    QueryPointer(
      window: number,
      done: (error: Error | null, pointer: { readonly rootX: number; readonly rootY: number }) => void,
    ): void
    InternAtom(onlyIfExists: boolean, name: string, done: (error: Error | null, atom: number) => void): void
    GetProperty(
      remove: 0,
      window: number,
      name: number,
      type: number,
      offset: number,
      words: number,
      done: (error: Error | null, property: { readonly data: Buffer }) => void,
    ): void
    GetGeometry(
      window: number,
      done: (error: Error | null, size: { readonly width: number; readonly height: number }) => void,
    ): void
    TranslateCoordinates(
      from: number,
      to: number,
      x: number,
      y: number,
      done: (error: Error | null, place: { readonly destX: number; readonly destY: number }) => void,
    ): void
    ChangeWindowAttributes(window: number, values: { readonly eventMask: number }): void
    SendEvent(window: number, propagate: 0, mask: number, event: Buffer): void
    on(event: 'event', listener: (event: XEvent) => void): void
    on(event: 'error', listener: (error: Error) => void): void
    terminate(): void
  }
  export interface Display {
    readonly client: XClient
    readonly screen: readonly { readonly root: number; readonly pixel_width: number; readonly pixel_height: number }[]
    readonly min_keycode: number
    readonly max_keycode: number
  }
  export function createClient(
    options: {
      readonly stream: Duplex
      readonly display: string
      readonly auth: { readonly name: string; readonly data: Buffer | string }
    },
    done: (error: Error | null, display: Display) => void,
  ): XClient
}
